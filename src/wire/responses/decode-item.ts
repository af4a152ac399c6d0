/** One Responses item, of an answer or of a request's input, as a neutral item. Nothing is refused: what has no neutral name is kept raw. */
import { defined, isObject } from "../../base/json.ts";
import type {
  CallItem,
  CallKind,
  CompactionItem,
  Extra,
  Item,
  MessageItem,
  ReasoningItem,
  ResultItem,
} from "../../spec/model.ts";
import {
  array,
  extraFields,
  isWhole,
  json,
  jsonObject,
  object,
  objects,
  type Raw,
  string,
  withFields,
  word,
} from "../raw.ts";
import { readArgumentsText, writeArguments } from "../arguments.ts";
import { type Sign, uncarry, uncarryThought } from "../envelope.ts";
import { decodeContent } from "./parts.ts";

export const wire = "responses";

/** What ran at the provider, and the name to show for it. */
const serverCalls: ReadonlyMap<string, string> = new Map([
  ["web_search_call", "web_search"],
  ["file_search_call", "file_search"],
  ["code_interpreter_call", "code_interpreter"],
  ["image_generation_call", "image_generation"],
  ["mcp_call", "mcp"],
  ["mcp_list_tools", "mcp_list_tools"],
  ["mcp_approval_request", "mcp_approval_request"],
]);

const fieldsOf = (names: string): ReadonlySet<string> => new Set(`type id status ${names}`.split(" "));
const messageFields = fieldsOf("role content phase");
const reasoningFields = fieldsOf("summary content encrypted_content");
const callFields = fieldsOf("call_id name namespace arguments input caller action operation execution");
const resultFields = fieldsOf("call_id name namespace output");
const compactionFields = fieldsOf("encrypted_content");

export function decodeItem(raw: Raw, sign?: Sign): Item {
  const type = string(raw["type"]) ?? (typeof raw["role"] === "string" ? "message" : "");
  const server = serverCalls.get(type);
  if (server !== undefined) {
    return defined({
      type: "server_call" as const,
      name: word(raw["name"]) ?? server,
      id: word(raw["id"]),
      wire,
      raw: jsonObject(raw),
    });
  }
  switch (type) {
    case "message":
      return decodeMessage(raw);
    case "reasoning":
      return decodeReasoning(raw, sign);
    case "compaction":
      return decodeCompaction(raw, sign);
    default:
      return decodeCall(type, raw) ?? decodeResult(type, raw) ?? { type: "other", wire, raw: jsonObject(raw) };
  }
}

const roles: ReadonlyMap<unknown, MessageItem["role"]> = new Map([
  [undefined, "assistant"],
  ["assistant", "assistant"],
  ["user", "user"],
  ["system", "system"],
  ["developer", "developer"],
]);

function decodeMessage(raw: Raw): Item {
  const role = roles.get(raw["role"]);
  if (role === undefined) return { type: "other", wire, raw: jsonObject(raw) };
  return defined({
    type: "message" as const,
    role,
    id: word(raw["id"]),
    phase: word(raw["phase"]),
    ...decodeContent(raw["content"], extraFields(wire, raw, messageFields)),
  });
}

function decodeReasoning(raw: Raw, sign: Sign | undefined): ReasoningItem {
  const summary = objects(raw["summary"]).map((part) => string(part["text"]) ?? "");
  const content = objects(raw["content"]).map((part) => string(part["text"]) ?? "");
  const extra = extraFields(wire, raw, reasoningFields);
  const state = uncarryThought(word(raw["encrypted_content"]), wire, "encrypted_content", sign);
  return defined({
    type: "reasoning" as const,
    id: word(raw["id"]),
    summary: summary.length > 0 ? summary : undefined,
    text: content.length > 0 ? content.join("") : summary.length > 0 ? undefined : state.text,
    opaque: state.opaque,
    // If the thoughts came in several pieces, the places of the cuts go back with them.
    extra: content.length > 1 ? withFields(wire, extra, { lengths: content.map((piece) => piece.length) }) : extra,
  });
}

/** The provider's own compaction, or a summary of ours that a client brings back. */
function decodeCompaction(raw: Raw, sign: Sign | undefined): CompactionItem {
  const opaque = uncarry(word(raw["encrypted_content"]), wire, "encrypted_content", sign);
  const isOurs = opaque?.wire === "callgate";
  return defined({
    type: "compaction" as const,
    id: word(raw["id"]),
    text: isOurs ? opaque.value : undefined,
    opaque: isOurs ? undefined : opaque,
    extra: extraFields(wire, raw, compactionFields),
  });
}

/** Calls that this side has to answer. A shell or tool search that the provider runs itself is a server call. */
function decodeCall(type: string, raw: Raw): Item | undefined {
  switch (type) {
    case "function_call":
      return callItem(raw, "function", string(raw["name"]) ?? "", writeArguments(raw["arguments"]));
    case "custom_tool_call":
      return callItem(raw, "custom", string(raw["name"]) ?? "", writeArguments(raw["input"]));
    case "local_shell_call": {
      const { type: _exec, ...action } = object(raw["action"]);
      return callItem(raw, "local_shell", "local_shell", spoken(action));
    }
    case "shell_call":
      if (string(object(raw["environment"])["type"])?.startsWith("container") === true) return serverCall(raw, "shell");
      return callItem(
        isPlainLocal(raw["environment"]) ? { ...raw, environment: null } : raw,
        "shell",
        "shell",
        spoken(object(raw["action"])),
      );
    case "apply_patch_call":
      return callItem(raw, "apply_patch", "apply_patch", spoken(object(raw["operation"])));
    case "tool_search_call":
      if (raw["execution"] === "server") return serverCall(raw, "tool_search");
      return callItem(raw, "tool_search", "tool_search", writeArguments(raw["arguments"]));
    default:
      return undefined;
  }
}

/** Whether a call's environment is local and has no further settings. A call that names no container means the same. */
function isPlainLocal(environment: unknown): boolean {
  return isObject(environment) && environment["type"] === "local" && Object.keys(environment).length === 1;
}

function serverCall(raw: Raw, name: string): Item {
  return defined({ type: "server_call" as const, name, id: word(raw["id"]), wire, raw: jsonObject(raw) });
}

function callItem(raw: Raw, kind: CallKind, name: string, said: string): CallItem {
  const itemId = word(raw["id"]);
  const { arguments: text, complete } =
    kind === "custom" ? { arguments: said, complete: true } : readArgumentsText(said);
  return defined({
    type: "call" as const,
    kind,
    id: word(raw["call_id"]) ?? (kind === "function" || kind === "custom" ? "" : (itemId ?? "")),
    name,
    namespace: word(raw["namespace"]),
    arguments: text,
    complete: complete && name !== "" && raw["status"] !== "incomplete" && (kind === "custom" || isWhole(text)),
    itemId,
    caller: raw["caller"] === null || raw["caller"] === undefined ? undefined : json(raw["caller"]),
    extra: extraFields(wire, raw, callFields),
  });
}

/** The fields of a native call as the text of its arguments, without empty ones. */
function spoken(fields: Raw): string {
  return writeArguments(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)));
}

const resultKinds: ReadonlyMap<string, CallKind> = new Map([
  ["function_call_output", "function"],
  ["custom_tool_call_output", "custom"],
  ["local_shell_call_output", "local_shell"],
  ["shell_call_output", "shell"],
  ["apply_patch_call_output", "apply_patch"],
  ["tool_search_output", "tool_search"],
]);

function decodeResult(type: string, raw: Raw): ResultItem | undefined {
  const kind = resultKinds.get(type);
  // A local shell's output carries the call id in `id`.
  const callId = word(raw["call_id"]) ?? (kind === "local_shell" ? word(raw["id"]) : undefined);
  if (kind === undefined || callId === undefined) return undefined;
  const extra = extraFields(wire, raw, kind === "tool_search" ? toolSearchFields : resultFields);
  return defined({
    type: "result" as const,
    callId,
    kind,
    name: word(raw["name"]),
    namespace: word(raw["namespace"]),
    extra,
    ...decodeOutput(kind, raw, extra),
  });
}

const toolSearchFields = fieldsOf("call_id tools execution");

type Output = Pick<ResultItem, "content" | "structured" | "ok" | "extra">;

function decodeOutput(kind: CallKind, raw: Raw, extra: Extra | undefined): Output {
  if (kind === "shell") return decodeShellOutput(raw);
  if (kind === "tool_search") {
    const tools = objects(raw["tools"]);
    const names = tools.map((tool) => string(tool["name"]) ?? string(tool["type"]) ?? "").join(", ");
    return {
      content: [{ type: "text", text: `Tools loaded: ${names || "none"}` }],
      structured: { tools: json(tools) },
      ok: true,
    };
  }
  const { refusal: _refusal, ...decoded } = decodeContent(raw["output"], extra);
  return { ...decoded, ok: kind !== "apply_patch" || raw["status"] !== "failed" };
}

function decodeShellOutput(raw: Raw): Output {
  const runs = objects(raw["output"]);
  const words = runs.map((run) =>
    [string(run["stdout"]) ?? "", string(run["stderr"]) ?? ""].filter((text) => text !== "").join("\n"),
  );
  const ok = runs.every(
    (run) => object(run["outcome"])["type"] === "exit" && object(run["outcome"])["exit_code"] === 0,
  );
  return {
    content: [{ type: "text", text: words.join("\n") }],
    structured: { output: json(array(raw["output"]).filter(isObject)) },
    ok,
  };
}
