/** A schema in one short line, for hints: `path: string, limit?: integer, mode?: "fast"|"slow"`. */
import { isObject } from "../base/json.ts";
import { follow } from "../schema/subschema.ts";

const longest = 400;

export function signature(schema: Readonly<Record<string, unknown>>): string {
  const root = follow(schema, schema);
  const properties = isObject(root["properties"]) ? root["properties"] : {};
  const required = new Set(Array.isArray(root["required"]) ? root["required"] : []);
  const names = Object.keys(properties).toSorted((a, b) => Number(required.has(b)) - Number(required.has(a)));
  const words: string[] = [];
  let length = 0;
  for (const name of names) {
    const word = `${name}${required.has(name) ? "" : "?"}: ${typeWord(schema, properties[name], 0)}`;
    length += word.length + 2;
    if (length > longest) return `{${[...words, "…"].join(", ")}}`;
    words.push(word);
  }
  return `{${words.join(", ")}}`;
}

function typeWord(root: unknown, schema: unknown, depth: number): string {
  const node = follow(root, schema);
  const values = Array.isArray(node["enum"])
    ? node["enum"]
    : Object.hasOwn(node, "const")
      ? [node["const"]]
      : undefined;
  if (values)
    return (
      values
        .slice(0, 8)
        .map((value) => JSON.stringify(value))
        .join("|") + (values.length > 8 ? "|…" : "")
    );
  const type = node["type"];
  if (type === "array") return depth > 2 ? "array" : `${typeWord(root, node["items"], depth + 1)}[]`;
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return type.join("|");
  const union = [node["anyOf"], node["oneOf"]].find(Array.isArray);
  if (union && depth < 3)
    return [...new Set(union.slice(0, 6).map((branch: unknown) => typeWord(root, branch, depth + 1)))].join("|");
  return isObject(node["properties"]) ? "object" : "any";
}
