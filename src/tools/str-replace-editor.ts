import { resolve } from "node:path";
import { CallError, defineTool, type ToolContext } from "../index.ts";
import { replaceOnce } from "./edit/replace.ts";
import { editText } from "./edit/edit.ts";
import { splitLines } from "./patch/lines.ts";

/** Search and replace, as a function and as XML: the edit most models know by heart. */
export const strReplaceEditor = defineTool({
  name: "str_replace_editor",
  description:
    "Edit a text file. str_replace: old_str, which must occur exactly once, becomes new_str; create: a new file with file_text; insert: new_str after line insert_line; view: the file with line numbers.",
  input: {
    type: "object",
    properties: {
      command: { type: "string", enum: ["str_replace", "create", "insert", "view"] },
      path: { type: "string", description: "The file" },
      old_str: { type: "string", description: "The exact text to replace, with enough around it to occur once" },
      new_str: { type: "string", description: "The text to put in its place" },
      file_text: { type: "string", description: "The whole text of a new file" },
      insert_line: { type: "integer", minimum: 0, description: "The line after which to insert; 0 is the beginning" },
      view_range: {
        type: "array",
        items: { type: "integer" },
        description: "First and last line; -1 as last is the end",
      },
    },
    required: ["command", "path"],
    additionalProperties: false,
  },
  xml: {
    tag: "str_replace_editor",
    parameters: [
      { name: "command", node: "attribute" },
      { name: "path", node: "attribute" },
      { name: "old_str", node: "element", required: false },
      { name: "new_str", node: "element", required: false },
      { name: "file_text", node: "element", required: false },
      { name: "insert_line", node: "attribute", required: false },
      { name: "view_range", node: "attribute", required: false },
    ],
    example: [
      '<str_replace_editor command="str_replace" path="src/a.ts">',
      "<old_str>const a = 1;</old_str>",
      "<new_str>const a = 2;</new_str>",
      "</str_replace_editor>",
    ].join("\n"),
  },
  access: ({ command, path }, { cwd }) =>
    command === "view" ? { read: [resolve(cwd, path)] } : { write: [resolve(cwd, path)] },
  mutates: ({ command }) => command !== "view",
  rehearsable: true,
  group: "file",
  run(input, ctx) {
    switch (input.command) {
      case "str_replace":
        return replace(input, ctx);
      case "create":
        return create(input, ctx);
      case "insert":
        return insert(input, ctx);
      case "view":
        return view(input, ctx);
    }
  },
});

interface Input {
  readonly path: string;
  readonly old_str?: string;
  readonly new_str?: string;
  readonly file_text?: string;
  readonly insert_line?: number;
  readonly view_range?: readonly number[];
}

async function replace({ path, old_str: wanted, new_str: by = "" }: Input, ctx: ToolContext): Promise<string> {
  if (wanted === undefined || wanted === "")
    throw new CallError("invalid_input", "str_replace needs old_str, the text to replace.");
  let line = 0;
  await editText(ctx.files, path, (text) => {
    const replaced = replaceOnce(text, wanted, by, path);
    line = replaced.line;
    return replaced.text;
  });
  return `Replaced in ${path}, at line ${line}.`;
}

async function create({ path, file_text: text }: Input, ctx: ToolContext): Promise<string> {
  if (text === undefined) throw new CallError("invalid_input", "create needs file_text, the file's text.");
  if (await ctx.files.stat(path))
    throw new CallError("failed", `${path} exists already.`, { hint: "Use str_replace to change it." });
  await ctx.files.write(path, text, { exclusive: true, parents: true });
  return `Created ${path}.`;
}

async function insert({ path, insert_line: after, new_str: added }: Input, ctx: ToolContext): Promise<string> {
  if (after === undefined || added === undefined)
    throw new CallError("invalid_input", "insert needs insert_line and new_str.");
  await editText(ctx.files, path, (text) => {
    const { texts, endings, ending } = splitLines(text);
    if (after > texts.length)
      throw new CallError("invalid_input", `${path} has ${texts.length} lines; cannot insert after line ${after}.`);
    const head = texts.slice(0, after).map((line, index) => line + (endings[index] || ending));
    const tail = texts.slice(after).map((line, index) => line + endings[after + index]!);
    const closed = added.replace(/\r?\n$/, "").replace(/\r?\n/g, ending);
    return (
      head.join("") + closed + (tail.length > 0 || text.endsWith("\n") || text === "" ? ending : "") + tail.join("")
    );
  });
  return `Inserted into ${path} after line ${after}.`;
}

/** A longer view is cut, and says so. */
const mostLines = 2_000;

async function view({ path, view_range: range }: Input, ctx: ToolContext): Promise<string> {
  const [first = 1, last = -1] = range ?? [];
  if (first < 1) throw new CallError("invalid_input", "view_range begins at line 1 or later.");
  const end = last < 0 ? first + mostLines - 1 : last;
  const slice = await ctx.files.slice(path, first, end, { maxLineBytes: 2_000 });
  if (slice.lines.length === 0 && first > 1)
    throw new CallError("invalid_input", `${path} has fewer than ${first} lines.`);
  const shown = slice.lines.map((line, index) => `${first + index}\t${line}`);
  return [...shown, ...(last < 0 && slice.more ? [`(More lines follow; the next is line ${end + 1}.)`] : [])].join(
    "\n",
  );
}
