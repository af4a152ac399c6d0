/** JSON values in the spellings some dialects want. */
import { isObject, type Json } from "../../base/json.ts";

/** JSON that holds no character a marker could begin with. Outside strings JSON has none of them. */
export function markerFree(json: string): string {
  return json.replace(/[<>`]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
}

/** `quote`: for strings that need no escape in it. */
export function toPython(value: Json, quote = '"'): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return pythonText(value, quote);
  if (typeof value === "number") return JSON.stringify(value);
  if (isObject(value))
    return `{${Object.entries(value)
      .map(([key, inner]) => `${pythonText(key, quote)}: ${toPython(inner, quote)}`)
      .join(", ")}}`;
  return `[${value.map((inner) => toPython(inner, quote)).join(", ")}]`;
}

function pythonText(value: string, quote: string): string {
  const json = JSON.stringify(value);
  return quote === '"' || json.includes("\\") || value.includes(quote) ? json : `${quote}${value}${quote}`;
}

/**
 * JSON as Python prints it, which is how templates print what models were trained on: a space after colons and
 * commas, or a line for each entry. Numbers and strings stay as they are, to the last character.
 */
export function spacedJson(json: string, indent = 0): string {
  let written = "";
  let depth = 0;
  const line = () => (indent === 0 ? "" : `\n${" ".repeat(indent * depth)}`);
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    if (token === "{" || token === "[") {
      depth++;
      written += `${token}${line()}`;
    } else if (token === "}" || token === "]") {
      depth--;
      // An empty list or object has nothing to put on a line.
      const open = written.trimEnd();
      written = open.endsWith("{") || open.endsWith("[") ? `${open}${token}` : `${written}${line()}${token}`;
    } else if (token === ",") written += indent === 0 ? ", " : `,${line()}`;
    else written += token === ":" ? ": " : token;
  }
  return written;
}

/** Bare keys, strings between tokens; what the token cannot hold is quoted as JSON. */
export function toQuoted(value: Json, quote: string, sorted = false): string {
  if (typeof value === "string") {
    const isHeld = `${value}${quote}`.indexOf(quote) === value.length;
    return isHeld ? `${quote}${value}${quote}` : markerFree(JSON.stringify(value));
  }
  if (isObject(value)) {
    const entries = Object.entries(value);
    const ordered = sorted ? entries.toSorted(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)) : entries;
    return `{${ordered.map(([key, inner]) => `${quotedKey(key)}:${toQuoted(inner, quote, sorted)}`).join(",")}}`;
  }
  if (Array.isArray(value))
    return `[${(value as readonly Json[]).map((inner) => toQuoted(inner, quote, sorted)).join(",")}]`;
  return JSON.stringify(value);
}

function quotedKey(key: string): string {
  return /^[A-Za-z_][A-Za-z0-9_-]*$/.test(key) ? key : markerFree(JSON.stringify(key));
}

/** Elements inside elements, `<item>` for lists: MiniMax M3. */
export function toElements(value: Json, prefix: string): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value))
    return (value as readonly Json[])
      .map((inner) => `${prefix}<item>${toElements(inner, prefix)}${prefix}</item>`)
      .join("");
  if (isObject(value))
    return Object.entries(value)
      .map(([key, inner]) => `${prefix}<${key}>${toElements(inner, prefix)}${prefix}</${key}>`)
      .join("");
  return JSON.stringify(value);
}
