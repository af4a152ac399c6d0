/** `--output-schema`: the schema that the answer has to fit. The session holds the model to it. */
import { readFileSync } from "node:fs";
import { isObject, parseJson, type JsonObject } from "../base/json.ts";
import { surveySchema } from "../schema/fault.ts";
import { nearest } from "../base/text.ts";
import { unreadable, UsageError } from "./io.ts";

export function loadOutputSchema(path: string): JsonObject {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(unreadable(path, error));
  }
  const read = parseJson(text);
  if (!read.ok || !isObject(read.value)) throw new UsageError(`${path} is no JSON Schema: it is not a JSON object`);
  const mistake = findMistake(read.value);
  if (mistake !== undefined) throw new UsageError(`${path} is no JSON Schema: ${mistake}`);
  return read.value;
}

const types = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** The first thing in the schema that no answer could be checked against. */
function findMistake(schema: JsonObject): string | undefined {
  const { faults, nodes } = surveySchema(schema);
  const [fault] = faults;
  if (fault !== undefined) return `${fault.at.join("/")}: ${fault.what}`;
  for (const node of nodes) {
    const words = mistakeIn(node);
    if (words !== undefined) return words;
  }
  return undefined;
}

function mistakeIn(node: Readonly<Record<string, unknown>>): string | undefined {
  const { type, required, properties, enum: values } = node;
  const unknown = [type ?? []].flat().find((name) => typeof name !== "string" || !types.includes(name));
  if (unknown !== undefined) {
    const [guess] = nearest(String(unknown), types, 1);
    return `there is no type ${JSON.stringify(unknown)}${guess === undefined ? `: it is one of ${types.join(", ")}` : `; did you mean "${guess}"?`}`;
  }
  if (required !== undefined && !(Array.isArray(required) && required.every((name) => typeof name === "string")))
    return `"required" is a list of names`;
  if (properties !== undefined && !isObject(properties)) return `"properties" is an object, a schema for each name`;
  return values === undefined || Array.isArray(values) ? undefined : `"enum" is a list of values`;
}
