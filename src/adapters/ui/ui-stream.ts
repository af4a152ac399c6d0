/** A turn as the AI SDK's UI message stream, and the page's messages as a turn. */
import type { UIMessageChunk } from "ai";
import { partsToText, type Part } from "../../base/content.ts";
import { isObject, parseJson } from "../../base/json.ts";
import type { SessionEvent, TurnEndReason } from "../../session/events.ts";
import { createRunningText } from "../../session/running-text.ts";
import type { Session } from "../../session/session.ts";
import type { Ended } from "../../spec/call.ts";

/** Options of `toUiMessageStream`. */
export interface UiStreamOptions {
  /** The message that the chunks belong to: a new one, or the one that a resumed turn continues. */
  readonly messageId?: string;
}

/** A message as `useChat` keeps and sends it. */
export interface UiMessage {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly { readonly type: string }[];
}

const finishes = {
  done: "stop",
  interrupted: "other",
  stopped: "other",
  limit: "length",
  loop: "other",
  error: "error",
} as const satisfies Record<TurnEndReason, string>;

/** A turn as the chunks that `useChat` reads, from `start` to `finish`. Everything that a call does is reported under its id. */
export async function* toUiMessageStream(
  events: AsyncIterable<SessionEvent>,
  { messageId = crypto.randomUUID() }: UiStreamOptions = {},
): AsyncGenerator<UIMessageChunk> {
  const open: OpenItems = new Map();
  const running: RunningTexts = new Map();
  let steps = 0;
  let isOpenStep = false;
  let isFinished = false;
  function* endStep(): Generator<UIMessageChunk> {
    if (isOpenStep) yield { type: "finish-step" };
    isOpenStep = false;
  }

  yield { type: "start", messageId };
  for await (const event of events) {
    switch (event.type) {
      case "request.sent": {
        yield* endStep();
        isOpenStep = true;
        steps++;
        open.clear();
        yield { type: "start-step" };
        break;
      }
      case "item.started":
      case "item.delta":
      case "item.done": {
        yield* itemChunks(event, open, `${messageId}-${steps}`);
        break;
      }
      case "call.asked":
      case "approval.asked":
      case "call.progress":
      case "exec.output":
      case "call.ended": {
        yield* callChunks(event, running);
        break;
      }
      case "plan.updated": {
        yield { type: "data-plan", id: "plan", data: event.plan };
        break;
      }
      case "diff.updated": {
        yield { type: "data-diff", id: `${messageId}-diff`, data: { diff: event.diff, files: event.files } };
        break;
      }
      case "usage.updated": {
        const { total, contextTokens, costUsd } = event;
        yield { type: "message-metadata", messageMetadata: { usage: total, contextTokens, costUsd } };
        break;
      }
      case "turn.waiting": {
        isFinished = true;
        yield* endStep();
        yield { type: "finish", finishReason: "tool-calls" };
        break;
      }
      case "turn.ended": {
        isFinished = true;
        yield* endStep();
        if (event.reason === "error") yield { type: "error", errorText: event.detail ?? "The turn failed." };
        if (event.reason === "interrupted") yield { type: "abort", reason: "The turn was interrupted." };
        else yield { type: "finish", finishReason: finishes[event.reason] };
        break;
      }
      default:
        break;
    }
  }
  if (!isFinished) yield { type: "finish", finishReason: "stop" };
}

/** The unfinished items of an answer, by their position in it. */
type OpenItems = Map<number, { readonly id: string; readonly kind: "text" | "reasoning" | "call" }>;
type RunningTexts = Map<string, ReturnType<typeof createRunningText>>;

/** Chunks for what the model writes: words, thoughts and the arguments of calls, as they grow. */
function* itemChunks(
  event: Extract<SessionEvent, { type: "item.started" | "item.delta" | "item.done" }>,
  open: OpenItems,
  place: string,
): Generator<UIMessageChunk> {
  switch (event.type) {
    case "item.started": {
      const { item, index } = event;
      const id = `${place}-${index}`;
      if (item.type === "call") {
        open.set(index, { id: item.id, kind: "call" });
        yield { type: "tool-input-start", toolCallId: item.id, toolName: item.name, dynamic: true };
      } else if (item.type === "message" || item.type === "reasoning") {
        const kind = item.type === "message" ? "text" : "reasoning";
        open.set(index, { id, kind });
        yield { type: `${kind}-start`, id };
      }
      break;
    }
    case "item.delta": {
      const item = open.get(event.index);
      if (item?.kind === "call") yield { type: "tool-input-delta", toolCallId: item.id, inputTextDelta: event.delta };
      else if (item !== undefined) yield { type: `${item.kind}-delta`, id: item.id, delta: event.delta };
      break;
    }
    case "item.done": {
      const item = open.get(event.index);
      if (item !== undefined && item.kind !== "call") yield { type: `${item.kind}-end`, id: item.id };
      open.delete(event.index);
      break;
    }
  }
}

/** Chunks for what happens to a call, under its id. */
function* callChunks(
  event: Extract<
    SessionEvent,
    { type: "call.asked" | "approval.asked" | "call.progress" | "exec.output" | "call.ended" }
  >,
  running: RunningTexts,
): Generator<UIMessageChunk> {
  switch (event.type) {
    case "call.asked": {
      const { id, name, arguments: given } = event.call;
      running.set(id, createRunningText());
      const parsed = parseJson(given);
      const input = parsed.ok ? parsed.value : given;
      yield { type: "tool-input-available", toolCallId: id, toolName: name, input, dynamic: true };
      break;
    }
    case "approval.asked": {
      const { hash, ...shown } = event.request;
      yield { type: "data-approval", id: hash, data: { toolCallId: event.id, ...shown } };
      yield { type: "tool-approval-request", approvalId: hash, toolCallId: event.id };
      break;
    }
    case "call.progress":
    case "exec.output": {
      const text = running.get(event.id)?.add(event);
      if (text !== undefined)
        yield {
          type: "tool-output-available",
          toolCallId: event.id,
          output: { status: "running", text },
          preliminary: true,
          dynamic: true,
        };
      break;
    }
    case "call.ended": {
      running.delete(event.call.id);
      yield endOfCall(event.call);
      break;
    }
  }
}

function endOfCall(ended: Ended): UIMessageChunk {
  const { id, ok, code, content, structured, exitCode } = ended;
  if (code === "rejected") return { type: "tool-output-denied", toolCallId: id };
  const text = partsToText(content.filter(({ type }) => type === "text"));
  if (!ok && typeof exitCode !== "number")
    return { type: "tool-output-error", toolCallId: id, errorText: text, dynamic: true };
  return {
    type: "tool-output-available",
    toolCallId: id,
    output: { status: "done", text, content, structured, exitCode },
    dynamic: true,
  };
}

/**
 * Answers what `useChat` posts. A message of the user begins a turn. Messages that come back with answered
 * approvals continue the turn that waits (`answerLater`), and each answer is valid only for the question it
 * was given to, by its hash. If the page is closed, the turn is interrupted.
 */
export async function toUiResponse(session: Session, messages: readonly UiMessage[]): Promise<Response> {
  const last = messages.at(-1);
  if (last === undefined) throw new TypeError("toUiResponse: there is no message");
  if (last.role === "user") {
    const prompt = last.parts.flatMap(readPart);
    return streamResponse(toUiMessageStream(session.send(prompt)));
  }
  await takeAnswers(session, last);
  const events = session.openTurn === undefined ? nothing() : session.resume();
  return streamResponse(toUiMessageStream(events, { messageId: last.id }));
}

/** The page sent its messages a second time, and nothing waits any more. */
async function* nothing(): AsyncGenerator<SessionEvent> {}

async function takeAnswers(session: Session, { parts }: UiMessage): Promise<void> {
  for (const part of parts) {
    const { state, toolCallId, approval } = part as { state?: unknown; toolCallId?: unknown; approval?: unknown };
    if (state !== "approval-responded" || typeof toolCallId !== "string" || !isObject(approval)) continue;
    const { id, approved, reason } = approval;
    if (typeof id !== "string") continue;
    // Only `true` counts as a yes.
    const message = typeof reason === "string" ? { message: reason } : {};
    await session.answer(toolCallId, id, approved === true ? { answer: "once" } : { answer: "no", ...message });
  }
}

function readPart(part: { readonly type: string }): readonly Part[] {
  const { text, url, mediaType, filename } = part as {
    text?: string;
    url?: string;
    mediaType?: string;
    filename?: string;
  };
  if (part.type === "text") return [{ type: "text", text: text ?? "" }];
  if (part.type !== "file" || url === undefined) return [];
  const inline = /^data:([^;,]+);base64,(.*)$/s.exec(url);
  const where = inline ? { data: inline[2]! } : { url };
  const kind = inline?.[1] ?? mediaType ?? "application/octet-stream";
  if (kind.startsWith("image/")) return [{ type: "image", mediaType: kind, ...where }];
  return [{ type: "file", mediaType: kind, ...(filename === undefined ? {} : { name: filename }), ...where }];
}

function streamResponse(chunks: AsyncGenerator<UIMessageChunk>): Response {
  return new Response(toEventStream(chunks, "data: [DONE]\n\n"), {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-vercel-ai-ui-message-stream": "v1",
    },
  });
}

/** Values as server-sent events. A client that stops reading stops the turn. */
export function toEventStream(values: AsyncGenerator<unknown>, last = ""): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await values.next();
        if (done !== true) return controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`));
        if (last !== "") controller.enqueue(encoder.encode(last));
        controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await values.return(undefined);
    },
  });
}
