/** A request with tools as one without: taught in the prompt, calls and results of the history as text. */
import { defined } from "../../base/json.ts";
import { partsToText, text, type Part } from "../../base/content.ts";
import type { CallItem, Item, MessageItem, ModelRequest, ResultItem, ToolChoice } from "../../spec/model.ts";
import type { Dialect } from "../dialect.ts";
import { toDialect } from "../dialects.ts";
import { encodeCalls, spellId } from "./call.ts";
import { encodeResults } from "./result.ts";
import { teach } from "./teach.ts";

/**
 * A request for a model that only reads text: tools are taught, and calls and results are written in the
 * dialect. `markers`: those of the model's turns, broken in results beside the dialect's own.
 */
export function toTextRequest(
  request: ModelRequest,
  dialect: string | Dialect,
  markers: readonly string[] = [],
): ModelRequest {
  const spoken = toDialect(dialect);
  const { tools: _tools, toolChoice, parallel, instructions, stop, ...rest } = request;
  const prompt =
    request.tools.length === 0 || toolChoice === "none" ? undefined : teachFor(request, spoken, toolChoice, parallel);
  const told = [instructions, prompt].filter((part) => part !== undefined && part !== "").join("\n\n");
  const stops = [...new Set([...(stop ?? []), ...(prompt === undefined ? [] : (spoken.stop ?? []))])];
  return {
    ...rest,
    ...(told === "" ? {} : { instructions: told }),
    ...(stops.length === 0 ? {} : { stop: stops }),
    input: mergeMessages(...historyToText(request, spoken, markers)),
    tools: [],
  };
}

function teachFor(
  request: ModelRequest,
  dialect: Dialect,
  choice: ToolChoice | undefined,
  parallel: boolean | undefined,
): string {
  const required =
    choice === "required"
      ? true
      : typeof choice === "object"
        ? "name" in choice
          ? choice.name
          : choice.mode === "required"
        : false;
  const allowed = typeof choice === "object" && "allowed" in choice ? new Set(choice.allowed) : undefined;
  const tools = allowed === undefined ? request.tools : request.tools.filter((tool) => allowed.has(tool.name));
  const key = `${dialect.name} ${required} ${parallel ?? ""} ${allowed === undefined ? "" : [...allowed].join(" ")}`;
  return once(request.tools, request, key, () => teach(dialect, tools, { required, ...defined({ parallel }) }));
}

interface Written {
  readonly tools: ModelRequest["tools"];
  readonly key: string;
  readonly words: string;
}

/** Every request of a session carries the history again: what an earlier one wrote of it is used again. */
const written = new WeakMap<object, Written>();

function once(of: object, { tools }: ModelRequest, key: string, write: () => string): string {
  const known = written.get(of);
  if (known !== undefined && known.tools === tools && known.key === key) return known.words;
  const words = write();
  written.set(of, { tools, key, words });
  return words;
}

/**
 * Neighbouring calls are one answer, neighbouring results one turn; thoughts stay with the provider that made them. Calls
 * that were read from text follow the words before them as the model wrote it: with its own white space and no other,
 * so that a server finds the beginning of the prompt in its cache.
 */
function historyToText(
  request: ModelRequest,
  dialect: Dialect,
  markers: readonly string[],
): readonly [items: readonly Item[], following: ReadonlySet<Item>] {
  const items: Item[] = [];
  const following = new Set<Item>();
  const asked = new Map<string, AskedCall>();
  for (const item of request.input)
    if (item.type === "call") asked.set(item.id, { name: item.name, position: asked.size });
  let position = 0;
  for (let at = 0; at < request.input.length; at++) {
    const item = request.input[at]!;
    if (item.type === "call") {
      const calls = run(request.input, at, (one): one is CallItem => one.type === "call");
      const written = once(item, request, `${dialect.name} ${position} ${calls.length}`, () =>
        encodeCalls(dialect, calls, request.tools, position),
      );
      const message: MessageItem = { type: "message", role: "assistant", content: [text(written)] };
      if (item.extra?.wire === "text") following.add(message);
      items.push(message);
      position += calls.length;
      at += calls.length - 1;
    } else if (item.type === "result") {
      const results = run(request.input, at, (one): one is ResultItem => one.type === "result");
      items.push(...resultMessages(results, asked, request, dialect, markers));
      at += results.length - 1;
    } else if (item.type !== "reasoning") items.push(item);
  }
  return [items, following];
}

function run<T extends Item>(items: readonly Item[], from: number, is: (item: Item) => item is T): readonly T[] {
  const found: T[] = [];
  for (let at = from; at < items.length; at++) {
    const item = items[at]!;
    if (!is(item)) break;
    found.push(item);
  }
  return found;
}

/** A call that a result answers. */
interface AskedCall {
  readonly name: string;
  readonly position: number;
}

function resultMessages(
  results: readonly ResultItem[],
  asked: ReadonlyMap<string, AskedCall>,
  request: ModelRequest,
  dialect: Dialect,
  markers: readonly string[],
): readonly Item[] {
  const { role } = dialect.result;
  const media = results.flatMap(({ content }) =>
    content.filter((part) => part.type !== "text" && part.type !== "resource"),
  );
  const told = results.map((result) => {
    const call = asked.get(result.callId);
    return {
      name: result.name ?? call?.name ?? "tool",
      id: result.callId,
      text: partsToText(result.content),
      ok: result.ok,
      ...defined({ position: call?.position }),
    };
  });
  if (role === "tool") {
    const each = told.map((result): Item => {
      const tool_call_id = spellId(dialect, result.id, result.name, result.position ?? 0);
      const content = encodeResults(dialect, [result], request.tools, markers);
      return { type: "other", wire: "chat", raw: { role: "tool", tool_call_id, name: result.name, content } };
    });
    return media.length === 0 ? each : [...each, { type: "message", role: "user", content: media }];
  }
  const write = () => encodeResults(dialect, told, request.tools, markers);
  const words = once(results[0]!, request, `${dialect.name} ${results.length}`, write);
  return [{ type: "message", role, content: [text(words), ...media] }];
}

/** Templates want speakers to alternate. */
function mergeMessages(items: readonly Item[], following: ReadonlySet<Item>): readonly Item[] {
  const merged: Item[] = [];
  for (const item of items) {
    const last = merged.at(-1);
    if (
      item.type === "message" &&
      last?.type === "message" &&
      last.role === item.role &&
      (item.role === "user" || item.role === "assistant")
    ) {
      const between = following.has(item) ? "" : "\n\n";
      merged[merged.length - 1] = { ...last, content: joinParts(last.content, item.content, between) };
    } else merged.push(item);
  }
  return merged;
}

function joinParts(a: readonly Part[], b: readonly Part[], between: string): readonly Part[] {
  const end = a.at(-1);
  const [start, ...rest] = b;
  if (end?.type !== "text" || start?.type !== "text") return [...a, ...b];
  return [...a.slice(0, -1), text(`${end.text}${between}${start.text}`), ...rest];
}
