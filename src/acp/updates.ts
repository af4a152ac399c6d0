/** What happens in a session, as updates for an editor. */
import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import { isObject, type Json } from "../base/json.ts";
import type { Item, MessageItem, ResultItem } from "../spec/model.ts";
import type { SessionEvent } from "../session/events.ts";
import { createRunningText } from "../session/running-text.ts";
import { describeCall, textContent, toContent } from "./describe.ts";

export interface UpdateOptions {
  readonly cwd: string;
  /** How many tokens the model can take. Without it nothing is said about how full the conversation is. */
  readonly contextWindow?: number;
  /** The editor shows output as a terminal does, piece by piece (`_meta.terminal_output`). */
  readonly terminalOutput: boolean;
  readonly now?: () => number;
}

/** Without terminals each update repeats the whole output, so updates come no more often than this. */
const outputEveryMs = 200;

interface OpenCall {
  readonly running: ReturnType<typeof createRunningText>;
  readonly diffs: ToolCallContent[];
  readonly isTerminal: boolean;
  toldAt: number;
}

/** The updates for one event. Remembers the calls that run. */
export function createUpdates(options: UpdateOptions): (event: SessionEvent) => readonly SessionUpdate[] {
  const { cwd, contextWindow, terminalOutput, now = Date.now } = options;
  const open = new Map<string, OpenCall>();

  return (event) => {
    switch (event.type) {
      case "item.delta": {
        if (event.field === "arguments") return [];
        const isThought = event.field === "reasoning" || event.field === "summary";
        return [chunk(isThought ? "agent_thought_chunk" : "agent_message_chunk", event.delta)];
      }
      case "call.asked": {
        const { id, name, arguments: given } = event.call;
        const described = describeCall(name, given, cwd);
        const isTerminal = terminalOutput && described.kind === "execute";
        open.set(id, { running: createRunningText(), diffs: [], isTerminal, toldAt: 0 });
        return [
          {
            sessionUpdate: "tool_call",
            toolCallId: id,
            status: "pending",
            name,
            ...described,
            ...(isTerminal
              ? { content: [{ type: "terminal", terminalId: id }], _meta: { terminal_info: { terminal_id: id, cwd } } }
              : {}),
          },
        ];
      }
      case "call.permitted":
        return [{ sessionUpdate: "tool_call_update", toolCallId: event.id, status: "in_progress" }];
      case "file.changed": {
        const call = open.get(event.id);
        if (call === undefined || (event.after === undefined && event.before === undefined)) return [];
        const old = event.before === undefined ? {} : { oldText: event.before };
        call.diffs.push({ type: "diff", path: event.path, newText: event.after ?? "", ...old });
        return [{ sessionUpdate: "tool_call_update", toolCallId: event.id, content: [...call.diffs] }];
      }
      case "exec.output":
      case "call.progress": {
        const call = open.get(event.id);
        if (call === undefined) return [];
        if (call.isTerminal && event.type === "exec.output")
          return [terminalUpdate(event.id, { terminal_output: { terminal_id: event.id, data: event.text } })];
        const text = call.running.add(event);
        if (text === undefined || now() - call.toldAt < outputEveryMs) return [];
        call.toldAt = now();
        return [
          { sessionUpdate: "tool_call_update", toolCallId: event.id, content: [...call.diffs, textContent(text)] },
        ];
      }
      case "call.ended": {
        const { id, ok, exitCode, content } = event.call;
        const call = open.get(id);
        open.delete(id);
        const status = ok || typeof exitCode === "number" ? "completed" : "failed";
        if (call?.isTerminal === true && typeof exitCode === "number")
          return [
            terminalUpdate(id, { terminal_exit: { terminal_id: id, exit_code: exitCode, signal: null } }, status),
          ];
        // A change of files is shown by its diffs, and the text beside it adds nothing.
        const told = call !== undefined && call.diffs.length > 0 && ok ? call.diffs : toContent(content);
        return [{ sessionUpdate: "tool_call_update", toolCallId: id, status, content: told }];
      }
      case "plan.updated":
        return planUpdate(event.plan);
      case "usage.updated":
        return contextWindow === undefined
          ? []
          : [
              {
                sessionUpdate: "usage_update",
                used: event.contextTokens,
                size: contextWindow,
                ...(event.costUsd === undefined ? {} : { cost: { amount: event.costUsd, currency: "USD" } }),
              },
            ];
      case "warning":
        return [{ sessionUpdate: "notice", severity: "warning", title: event.message }];
      case "history.compacted":
        return [{ sessionUpdate: "compaction_update", compactionId: `${now()}`, status: "completed" }];
      default:
        return [];
    }
  };
}

export function chunk(
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  text: string,
): SessionUpdate {
  return { sessionUpdate, content: { type: "text", text } };
}

function terminalUpdate(
  toolCallId: string,
  meta: Record<string, unknown>,
  status?: "completed" | "failed",
): SessionUpdate {
  return { sessionUpdate: "tool_call_update", toolCallId, _meta: meta, ...(status === undefined ? {} : { status }) };
}

const planStatuses = ["pending", "in_progress", "completed"] as const;

function planUpdate(plan: Json): SessionUpdate[] {
  const steps = isObject(plan) && Array.isArray(plan["plan"]) ? plan["plan"] : [];
  const entries = steps.filter(isObject).map(({ step, status }) => ({
    content: String(step),
    priority: "medium" as const,
    status: planStatuses.find((known) => known === status) ?? "pending",
  }));
  return entries.length === 0 ? [] : [{ sessionUpdate: "plan", entries }];
}

/** A reopened session from its beginning: what was said and done, as it was shown then. */
export function replayUpdates(history: readonly Item[], cwd: string, plan?: Json): readonly SessionUpdate[] {
  const results = new Map(history.flatMap((item) => (item.type === "result" ? [[item.callId, item] as const] : [])));
  const told = history.flatMap((item) => replayItem(item, results, cwd));
  return plan === undefined ? told : [...told, ...planUpdate(plan)];
}

function replayItem(item: Item, results: ReadonlyMap<string, ResultItem>, cwd: string): SessionUpdate[] {
  switch (item.type) {
    case "message":
      return replayMessage(item);
    case "reasoning": {
      const thought = item.summary?.join("\n") ?? item.text ?? "";
      return thought === "" ? [] : [chunk("agent_thought_chunk", thought)];
    }
    case "call": {
      const result = results.get(item.id);
      return [
        {
          sessionUpdate: "tool_call",
          toolCallId: item.id,
          name: item.name,
          ...describeCall(item.name, item.arguments, cwd),
          status: result?.ok === true ? "completed" : "failed",
          content: toContent(result?.content ?? []),
        },
      ];
    }
    default:
      return [];
  }
}

function replayMessage({ role, content }: MessageItem): SessionUpdate[] {
  if (role !== "user" && role !== "assistant") return [];
  const kind = role === "user" ? "user_message_chunk" : "agent_message_chunk";
  return content.flatMap((part): SessionUpdate[] => {
    if (part.type === "text") return part.text === "" ? [] : [chunk(kind, part.text)];
    if (part.type === "image" && part.data !== undefined)
      return [
        {
          sessionUpdate: kind,
          content: { type: "image", data: part.data, mimeType: part.mediaType ?? "image/png" },
        },
      ];
    return [];
  });
}
