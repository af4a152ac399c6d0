/** `--output-schema`: the answer is JSON of a schema, or the command says that it is not. */
import { readFileSync } from "node:fs";
import { isObject, parseJson, type JsonObject } from "../base/json.ts";
import { createValidator } from "../schema/validate.ts";
import { UsageError } from "./io.ts";

export interface OutputSchema {
  readonly schema: JsonObject;
  /** Why an answer is not what was asked for, or undefined. Providers promise it; servers of one's own may not know the word. */
  problem(answer: string): Promise<string | undefined>;
}

export function loadOutputSchema(path: string): OutputSchema {
  const schema = readSchema(path);
  return {
    schema,
    async problem(answer) {
      const read = parseJson(answer);
      if (!read.ok) return "the answer is not JSON, as --output-schema wants it";
      const checked = await createValidator(schema)(read.value);
      if (checked.ok) return undefined;
      const words = checked.issues.map(({ path: at, message }) => `${at === "" ? "it" : at} ${message}`);
      return `the answer does not fit the schema: ${words.join("; ")}`;
    },
  };
}

function readSchema(path: string): JsonObject {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`cannot read ${path}: ${(error as NodeJS.ErrnoException).code}`);
  }
  const read = parseJson(text);
  if (!read.ok || !isObject(read.value)) throw new UsageError(`${path} is no JSON Schema: it is not a JSON object`);
  return read.value;
}
