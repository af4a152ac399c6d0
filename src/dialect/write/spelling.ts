/** JSON values in the spellings some dialects want. */
import { isObject, type Json } from "../../base/json.ts";

/** JSON that holds no character a marker could begin with. Outside strings JSON has none of them. */
export function markerFree(json: string): string {
  return json.replace(/[<>`]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
}

export function toPython(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return JSON.stringify(value);
  if (isObject(value))
    return `{${Object.entries(value)
      .map(([key, inner]) => `${JSON.stringify(key)}: ${toPython(inner as Json)}`)
      .join(", ")}}`;
  return `[${(value as readonly Json[]).map(toPython).join(", ")}]`;
}

/** Bare keys, strings between tokens; what the token cannot hold is quoted as JSON. */
export function toQuoted(value: Json, quote: string): string {
  if (typeof value === "string")
    return value.includes(quote.charAt(0)) ? markerFree(JSON.stringify(value)) : `${quote}${value}${quote}`;
  if (isObject(value))
    return `{${Object.entries(value)
      .map(([key, inner]) => `${quotedKey(key)}:${toQuoted(inner as Json, quote)}`)
      .join(",")}}`;
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map((inner) => toQuoted(inner, quote)).join(",")}]`;
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
      .map(([key, inner]) => `${prefix}<${key}>${toElements(inner as Json, prefix)}${prefix}</${key}>`)
      .join("");
  return JSON.stringify(value);
}
