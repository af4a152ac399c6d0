/** The small part of YAML that models write as a tool's body: keys, plain and quoted scalars, block text, short lists, JSON. */
import { textToJson, normalizeLiteral, wantedOf } from "../values.ts";
import type { Notes } from "../quoting.ts";

interface Entry {
  readonly key: string;
  readonly inline: string;
  readonly block: readonly string[];
}

/** One JSON object, or undefined when a line belongs to no key. */
export function yamlToJson(text: string, parameters: unknown, notes: Notes): string | undefined {
  const lines = text.replace(/^\n/, "").replace(/\s+$/, "").split("\n");
  const indent = Math.min(
    ...lines.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length),
  );
  const entries: { key: string; inline: string; block: string[] }[] = [];
  if (text.trim() === "") return "{}";
  for (const line of lines) {
    const flat = line.slice(Math.min(indent, line.length - line.trimStart().length));
    const match = /^(?:"([^"]{1,128})"|([A-Za-z0-9_.$-]{1,128}))\s*:(?:\s(.*))?$/.exec(flat);
    const last = entries.at(-1);
    if (match && (last === undefined || !/^["']{3}/.test(last.inline)))
      entries.push({ key: match[1] ?? match[2]!, inline: (match[3] ?? "").trim(), block: [] });
    else if (last === undefined) {
      if (flat.trim() !== "" && !flat.startsWith("#")) return undefined;
    } else last.block.push(flat);
  }
  const fields = entries.map((entry) => `${JSON.stringify(entry.key)}:${valueToJson(entry, parameters, notes)}`);
  return new Set(entries.map(({ key }) => key)).size === entries.length ? `{${fields.join(",")}}` : undefined;
}

function valueToJson(entry: Entry, parameters: unknown, notes: Notes): string {
  const wanted = wantedOf(parameters, entry.key);
  const { inline } = entry;
  const body = dedent(entry.block);
  if (/^[|>][+-]?$/.test(inline))
    return JSON.stringify(
      inline.startsWith(">") ? body.replaceAll("\n", " ") : `${body}${inline.endsWith("-") ? "" : "\n"}`,
    );
  if (inline === "" && body !== "") {
    const items = body.split("\n").map((line) => /^-\s+(.*)$/.exec(line.trim())?.[1]);
    if (items.every((item) => item !== undefined))
      return `[${items.map((item) => scalar(item!, undefined, notes)).join(",")}]`;
    return textToJson(body, wanted, notes);
  }
  if (body !== "")
    return textToJson(`${inline}\n${entry.block.join("\n")}${/^["']{3}/.test(inline) ? "\n" : ""}`, wanted, notes);
  return scalar(inline, wanted, notes);
}

function scalar(text: string, wanted: ReturnType<typeof wantedOf>, notes: Notes): string {
  if (/^"(?:[^"\\]|\\.)*"$/s.test(text)) return normalizeLiteral(text, notes) ?? JSON.stringify(text);
  if (/^'(?:[^']|'')*'$/s.test(text)) return JSON.stringify(text.slice(1, -1).replaceAll("''", "'"));
  if (/^[[{]/.test(text)) return normalizeLiteral(text, notes) ?? textToJson(text, wanted, notes);
  return textToJson(text, wanted, notes);
}

function dedent(lines: readonly string[]): string {
  const filled = lines.filter((line) => line.trim() !== "");
  const indent = Math.min(...filled.map((line) => line.length - line.trimStart().length), 64);
  return lines.map((line) => line.slice(Math.min(indent, line.length - line.trimStart().length))).join("\n");
}
