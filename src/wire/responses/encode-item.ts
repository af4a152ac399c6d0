/**
 * Neutral items as Responses items: those of an answer (towards a client, every field the clients' types
 * want) and those of a request's input (towards a model, nothing it might refuse).
 */
import { partsToText } from "../../base/content.ts";
import { defined, type JsonObject } from "../../base/json.ts";
import type { CallItem, CompactionItem, Item, MessageItem, ReasoningItem, ResultItem } from "../../spec/model.ts";
import { argumentsText } from "../arguments.ts";
import { carry, carryThought, type Sign } from "../envelope.ts";
import { idRules, inventId, legalId } from "../ids.ts";
import { array, echoed, json, jsonObject, object, parseObject, word } from "../raw.ts";
import { wire } from "./decode-item.ts";
import { encodeContent, encodeOutput } from "./parts.ts";

/** Codex sends an id back only if it begins like this API's ids. */
const prefixes = {
  message: "msg_",
  reasoning: "rs_",
  compaction: "cmp_",
  function: "fc_",
  custom: "ctc_",
  local_shell: "lsh_",
  shell: "sh_",
  apply_patch: "apc_",
  tool_search: "tsc_",
} as const;

/** An item of an answer, or undefined if this wire cannot express it. `place` is used to invent missing ids. */
export function encodeOutputItem(item: Item, seed: string, place: number, sign?: Sign): JsonObject | undefined {
  const idOf = (id: string | undefined, prefix: string) => ownId(id, prefix) ?? inventId(seed, place, prefix);
  switch (item.type) {
    case "message":
      return { ...encodeMessage(item), id: idOf(item.id, prefixes.message), status: "completed" };
    case "reasoning":
      return {
        ...encodeReasoning(item),
        id: idOf(item.id, prefixes.reasoning),
        // Some clients give back this string and nothing else of a thought.
        encrypted_content: carryThought(item, wire, sign, item.text),
      };
    case "call":
      return {
        ...encodeCall(isReadable(item) ? item : { ...item, arguments: argumentsText(item) }),
        id: idOf(item.itemId, prefixes[item.kind]),
        status: "completed",
      };
    case "compaction": {
      const sealed = item.opaque ?? { wire: "callgate", kind: "text", value: item.text ?? "" };
      return {
        ...encodeCompaction(item),
        id: idOf(item.id, prefixes.compaction),
        encrypted_content: carry(sealed, wire, sign) ?? "",
      };
    }
    case "server_call":
    case "other":
      if (item.wire !== wire) return undefined;
      return word(item.raw["id"]) === undefined ? { ...item.raw, id: inventId(seed, place, "item_") } : item.raw;
    case "result":
      return undefined;
  }
}

/** An item of a request's input, or undefined if the model's server does not accept it. */
export function encodeInputItem(item: Item): JsonObject | undefined {
  switch (item.type) {
    case "message":
      if (item.content.length === 0 && item.refusal === undefined && item.extra === undefined) return undefined;
      return defined({ ...encodeMessage(item), id: ownId(item.id, prefixes.message) });
    case "reasoning": {
      const isOwn =
        item.opaque === undefined ? ownId(item.id, prefixes.reasoning) !== undefined : item.opaque.wire === wire;
      if (!isOwn) return undefined;
      return defined({
        ...encodeReasoning(item),
        id: ownId(item.id, prefixes.reasoning),
        encrypted_content: item.opaque?.value,
      });
    }
    case "call": {
      const needsStatus = item.kind === "local_shell" || item.kind === "apply_patch";
      const status = item.complete ? (needsStatus ? "completed" : undefined) : "incomplete";
      return defined({ ...encodeCall(item), id: ownId(item.itemId, prefixes[item.kind]), status });
    }
    case "result":
      return encodeResult(item);
    case "compaction":
      if (item.opaque?.wire === wire)
        return defined({
          ...encodeCompaction(item),
          id: ownId(item.id, prefixes.compaction),
          encrypted_content: item.opaque.value,
        });
      return item.text === undefined
        ? undefined
        : { type: "message", role: "user", content: [{ type: "input_text", text: item.text }] };
    case "server_call":
    case "other":
      return item.wire === wire ? item.raw : undefined;
  }
}

function ownId(id: string | undefined, prefix: string): string | undefined {
  return id !== undefined && id.startsWith(prefix) && id.length <= idRules.responses.max ? id : undefined;
}

function encodeMessage(item: MessageItem): JsonObject {
  const { parts: _parts, ...more } = echoed(item.extra, wire);
  const content = encodeContent(item.content, item.extra, item.role === "assistant");
  if (item.refusal !== undefined) content.push({ type: "refusal", refusal: item.refusal });
  return defined({ type: "message", role: item.role, content, phase: item.phase, ...more });
}

function encodeReasoning(item: ReasoningItem): JsonObject {
  const { lengths, ...more } = echoed(item.extra, wire);
  const pieces = item.text === undefined ? undefined : cut(item.text, array(lengths));
  return defined({
    type: "reasoning",
    summary: (item.summary ?? []).map((text) => ({ type: "summary_text", text })),
    content: pieces?.map((text) => ({ type: "reasoning_text", text })),
    ...more,
  });
}

/** The pieces in which the text came, unless the text has changed since. */
function cut(text: string, lengths: readonly unknown[]): readonly string[] {
  const sizes = lengths.filter((length) => typeof length === "number");
  if (sizes.reduce((sum, size) => sum + size, 0) !== text.length) return [text];
  let at = 0;
  return sizes.map((size) => text.slice(at, (at += size)));
}

/**
 * Whether a client can parse the arguments of the call. It tries that for every function call, also for one without
 * arguments.
 */
function isReadable({ complete, kind, arguments: args }: CallItem): boolean {
  return kind === "custom" || (complete && args !== "");
}

function encodeCompaction(item: CompactionItem): JsonObject {
  return { type: "compaction", ...echoed(item.extra, wire) };
}

function encodeCall(item: CallItem): JsonObject {
  const call_id = legalId(item.id, idRules.responses);
  const common = defined({ call_id, caller: item.caller, ...echoed(item.extra, wire) });
  switch (item.kind) {
    case "function":
      return defined({
        type: "function_call",
        name: item.name,
        namespace: item.namespace,
        arguments: item.arguments,
        ...common,
      });
    case "custom":
      return defined({
        type: "custom_tool_call",
        name: item.name,
        namespace: item.namespace,
        input: item.arguments,
        ...common,
      });
    case "local_shell":
      return { type: "local_shell_call", action: { type: "exec", command: [], env: {}, ...fieldsOf(item) }, ...common };
    case "shell":
      return {
        type: "shell_call",
        action: { commands: [], ...fieldsOf(item) },
        environment: { type: "local" },
        ...common,
      };
    case "apply_patch":
      return { type: "apply_patch_call", operation: fieldsOf(item), ...common };
    case "tool_search":
      return { type: "tool_search_call", execution: "client", arguments: fieldsOf(item), ...common };
  }
}

function fieldsOf(item: CallItem): JsonObject {
  return jsonObject(parseObject(item.arguments) ?? {});
}

function encodeResult(item: ResultItem): JsonObject {
  const call_id = legalId(item.callId, idRules.responses);
  const { parts: _parts, ...more } = echoed(item.extra, wire);
  switch (item.kind) {
    case "function":
      return defined({
        type: "function_call_output",
        call_id,
        output: encodeOutput(item.content, item.extra),
        ...more,
      });
    case "custom":
      return defined({
        type: "custom_tool_call_output",
        call_id,
        output: encodeOutput(item.content, item.extra),
        ...more,
      });
    case "local_shell":
      return { type: "local_shell_call_output", id: call_id, output: partsToText(item.content), ...more };
    case "shell":
      return { type: "shell_call_output", call_id, output: shellRuns(item), ...more };
    case "apply_patch":
      return {
        type: "apply_patch_call_output",
        call_id,
        status: item.ok ? "completed" : "failed",
        output: partsToText(item.content),
        ...more,
      };
    case "tool_search":
      return {
        type: "tool_search_output",
        call_id,
        execution: "client",
        status: "completed",
        tools: json(array(object(item.structured)["tools"])),
        ...more,
      };
  }
}

function shellRuns(item: ResultItem): JsonObject[] {
  const runs = object(item.structured)["output"];
  // The runs are sent as they came. A result without any becomes a single run.
  if (Array.isArray(runs)) return runs.map((run) => jsonObject(object(run)));
  return [{ stdout: partsToText(item.content), stderr: "", outcome: { type: "exit", exit_code: item.ok ? 0 : 1 } }];
}
