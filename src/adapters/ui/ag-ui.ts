/** A turn as AG-UI events, and an AG-UI run as a turn. */
import { partsToText } from "../../base/content.ts";
import { isObject } from "../../base/json.ts";
import type { SessionEvent } from "../../session/events.ts";
import type { Session } from "../../session/session.ts";
import type { ApprovalRequest } from "../../spec/stages.ts";
import { toEventStream } from "./ui-stream.ts";

/** One event of the AG-UI protocol. */
export interface AgUiEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Which thread and run of AG-UI the events belong to. */
export interface AgUiRun {
  readonly threadId: string;
  readonly runId: string;
}

/** What an AG-UI client posts, as far as it is read here. */
export interface AgUiInput extends AgUiRun {
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[];
  /** Answers to the interrupts of the run before. Only `payload.approved === true` is a yes. */
  readonly resume?: readonly { readonly interruptId: string; readonly status?: string; readonly payload?: unknown }[];
}

/** A turn as the events of one AG-UI run, from RUN_STARTED to RUN_FINISHED or RUN_ERROR. Calls that wait for a person end it as interrupts. */
export async function* toAgUi(events: AsyncIterable<SessionEvent>, run: AgUiRun): AsyncGenerator<AgUiEvent> {
  const { threadId, runId } = run;
  const open: OpenItems = new Map();
  const started = new Set<string>();
  const questions = new Map<string, ApprovalRequest>();
  let step = 0;
  let isOpenStep = false;
  function* endStep(): Generator<AgUiEvent> {
    if (isOpenStep) yield { type: "STEP_FINISHED", stepName: `request ${step}` };
    isOpenStep = false;
  }

  yield { type: "RUN_STARTED", threadId, runId };
  for await (const event of events) {
    switch (event.type) {
      case "request.sent": {
        yield* endStep();
        isOpenStep = true;
        open.clear();
        yield { type: "STEP_STARTED", stepName: `request ${++step}` };
        break;
      }
      case "item.started":
      case "item.delta":
      case "item.done": {
        if (event.type === "item.started" && event.item.type === "call") started.add(event.item.id);
        yield* itemEvents(event, open, `${runId}-${step}`);
        break;
      }
      case "call.asked": {
        // The calls that another call makes, and those of a resumed turn, were not part of an answer of this run.
        const { id, name, arguments: given } = event.call;
        if (started.has(id)) break;
        started.add(id);
        yield { type: "TOOL_CALL_START", toolCallId: id, toolCallName: name };
        if (given !== "") yield { type: "TOOL_CALL_ARGS", toolCallId: id, delta: given };
        yield { type: "TOOL_CALL_END", toolCallId: id };
        break;
      }
      case "approval.asked": {
        questions.set(event.id, event.request);
        break;
      }
      case "approval.answered": {
        questions.delete(event.id);
        break;
      }
      case "call.progress": {
        yield { type: "CUSTOM", name: "callgate.progress", value: { toolCallId: event.id, progress: event.progress } };
        break;
      }
      case "exec.output": {
        const { id: toolCallId, stream, text } = event;
        yield { type: "CUSTOM", name: "callgate.output", value: { toolCallId, stream, text } };
        break;
      }
      case "call.ended": {
        const { id, content } = event.call;
        questions.delete(id);
        const messageId = `${runId}-result-${id}`;
        yield { type: "TOOL_CALL_RESULT", messageId, toolCallId: id, role: "tool", content: partsToText(content) };
        break;
      }
      case "plan.updated": {
        yield { type: "STATE_SNAPSHOT", snapshot: { plan: event.plan } };
        break;
      }
      case "turn.waiting": {
        yield* endStep();
        const interrupts = event.calls.flatMap((toolCallId) => {
          const request = questions.get(toolCallId);
          if (request === undefined) return [];
          const { hash, reason, ...metadata } = request;
          return [{ id: hash, reason: "tool_call", message: reason, toolCallId, metadata }];
        });
        yield { type: "RUN_FINISHED", threadId, runId, outcome: { type: "interrupt", interrupts } };
        break;
      }
      case "turn.ended": {
        yield* endStep();
        if (event.reason === "error") yield { type: "RUN_ERROR", message: event.detail ?? "The turn failed." };
        else yield { type: "RUN_FINISHED", threadId, runId, outcome: { type: "success" } };
        break;
      }
      default:
        break;
    }
  }
}

/** The unfinished items of an answer, by their position in it. */
type OpenItems = Map<number, { readonly id: string; readonly kind: "text" | "reasoning" | "call" }>;

/** Events for what the model writes: words, thoughts and the arguments of calls, as they grow. */
function* itemEvents(
  event: Extract<SessionEvent, { type: "item.started" | "item.delta" | "item.done" }>,
  open: OpenItems,
  place: string,
): Generator<AgUiEvent> {
  switch (event.type) {
    case "item.started": {
      const { item, index } = event;
      const id = `${place}-${index}`;
      if (item.type === "call") {
        open.set(index, { id: item.id, kind: "call" });
        yield { type: "TOOL_CALL_START", toolCallId: item.id, toolCallName: item.name };
      } else if (item.type === "message") {
        open.set(index, { id, kind: "text" });
        yield { type: "TEXT_MESSAGE_START", messageId: id, role: "assistant" };
      } else if (item.type === "reasoning") {
        open.set(index, { id, kind: "reasoning" });
        yield { type: "REASONING_START", messageId: id };
        yield { type: "REASONING_MESSAGE_START", messageId: id, role: "reasoning" };
      }
      break;
    }
    case "item.delta": {
      const item = open.get(event.index);
      if (item === undefined || event.delta === "") break;
      if (item.kind === "call") yield { type: "TOOL_CALL_ARGS", toolCallId: item.id, delta: event.delta };
      else
        yield {
          type: item.kind === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT",
          messageId: item.id,
          delta: event.delta,
        };
      break;
    }
    case "item.done": {
      const item = open.get(event.index);
      open.delete(event.index);
      if (item?.kind === "call") yield { type: "TOOL_CALL_END", toolCallId: item.id };
      if (item?.kind === "text") yield { type: "TEXT_MESSAGE_END", messageId: item.id };
      if (item?.kind === "reasoning") {
        yield { type: "REASONING_MESSAGE_END", messageId: item.id };
        yield { type: "REASONING_END", messageId: item.id };
      }
      break;
    }
  }
}

/** Answers an AG-UI run. The user's last message begins a turn, and `resume` continues the one that waits. */
export async function toAgUiResponse(session: Session, input: AgUiInput): Promise<Response> {
  const answers = input.resume ?? [];
  const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
  if (answers.length === 0) {
    const last = input.messages.findLast(({ role }) => role === "user")?.content;
    if (last === undefined) throw new TypeError("toAgUiResponse: there is no message of the user");
    return new Response(toEventStream(toAgUi(session.send(readContent(last)), input)), { headers });
  }
  // The id of an interrupt is the hash of its question. The session knows which call waits for it.
  for (const callId of session.openTurn?.waiting ?? [])
    for (const { interruptId, status, payload } of answers) {
      const isYes = status !== "cancelled" && isObject(payload) && payload["approved"] === true;
      await session.answer(callId, interruptId, { answer: isYes ? "once" : "no" });
    }
  return new Response(toEventStream(toAgUi(session.resume(), input)), { headers });
}

function readContent(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content.filter(isObject) : [];
  return parts.flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("\n");
}
