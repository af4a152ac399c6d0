import { partsToText, text } from "../base/content.ts";
import { decodeText, encodeCalls, findDialect } from "../dialect/index.ts";
import type { Item, Model, ModelRequest } from "../spec/model.ts";
import { answerToEvents, collect } from "../wire/answer.ts";

/**
 * A model that behaves like a text-only one: it sees calls and results as text, and writes its own
 * calls into its answer. The counterpart of `createTextModel`.
 */
export function speakText(model: Model, dialect: string): Model {
  return {
    name: model.name,
    async *ask(request, signal) {
      const { items, ...end } = await collect(model.ask(readConversation(request, dialect), signal));
      const said = items.flatMap((item) => (item.type === "message" ? [partsToText(item.content)] : []));
      const taught = taughtTools(request);
      const calls = items
        .filter((item) => item.type === "call")
        // Its arguments stay as they were scripted, to the last space.
        .map((call) => ({ ...call, name: taughtName(call.name, taught), extra: { wire: "text", fields: {} } }));
      const words = calls.length === 0 ? said : [...(isWhole(dialect) ? [] : said), encodeCalls(dialect, calls, [])];
      const message: Item = { type: "message", role: "assistant", content: [text(words.join("\n"))] };
      yield* answerToEvents({ ...end, items: [message], finish: "stop" });
    },
  };
}

/** Without markers, and in a message that goes to a tool, a call must be the whole message. */
function isWhole(dialect: string): boolean {
  const { blocks, channels } = findDialect(dialect) ?? { blocks: [] };
  const written = blocks.find(({ layout }) => layout !== undefined) ?? blocks[0];
  return channels === "muse" || written?.whole === true;
}

/**
 * Turns messages back into what they stand for: calls in the assistant's text, and what the user said
 * after them as results.
 */
function readConversation(request: ModelRequest, dialect: string): ModelRequest {
  const input: Item[] = [];
  const tools = taughtTools(request);
  let open: { readonly id: string; readonly name: string }[] = [];
  for (const item of request.input) {
    if (item.type !== "message") continue;
    const said = partsToText(item.content);
    if (item.role === "assistant") {
      const items = decodeText(said, { dialect, tools, startsIn: "text", idPrefix: `text_${input.length}_` }).items;
      open = items.filter((part) => part.type === "call");
      input.push(...items);
    } else if (item.role === "user" && open.length > 0) {
      for (const { id, name } of open)
        input.push({
          type: "result",
          callId: id,
          kind: "function",
          name,
          content: [text(said)],
          ok: !/\berror\b/i.test(said.slice(0, 200)),
        });
      open = [];
    } else input.push(item);
  }
  return { ...request, input };
}

/**
 * A text model knows its tools only from the manual, and dialects with one tag per tool cannot be read
 * without the names.
 */
function taughtTools(request: ModelRequest): readonly { readonly name: string }[] {
  return [...(request.instructions ?? "").matchAll(/^## ([\w/-]+)$/gm)].map((match) => ({ name: match[1]! }));
}

/** `server/tool` as the manual spells it. */
function taughtName(name: string, taught: readonly { readonly name: string }[]): string {
  const spelling = `mcp__${name.replaceAll("/", "__")}`;
  return taught.some((tool) => tool.name === spelling) ? spelling : name;
}
