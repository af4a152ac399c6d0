/**
 * Checks the final answer of a turn that has to be JSON of a given schema. If the answer does not fit, the model is
 * asked again.
 */
import { isObject, parseJson, type Json, type JsonObject } from "../base/json.ts";
import { findFaults } from "../schema/fault.ts";
import { toSchema } from "../schema/schema.ts";
import { isFreeform } from "../spec/freeform.ts";
import type { InputSchema } from "../spec/infer.ts";
import type { ModelRequest } from "../spec/model.ts";
import type { SessionOptions } from "./session-options.ts";
import { ownMessage, type CheckedAnswer } from "./turn.ts";

export interface AnswerCheck {
  /** What the provider is told. */
  readonly wanted: NonNullable<ModelRequest["outputSchema"]>;
  /** Begins a turn, and returns its check. */
  start(): (text: string) => Promise<CheckedAnswer>;
}

/** How often a model may correct an answer that does not fit. */
const maxRepairs = 2;

/** Undefined if any answer is accepted. Throws a TypeError for an invalid schema. */
export function createAnswerCheck({
  output,
  request,
}: Pick<SessionOptions, "output" | "request">): AnswerCheck | undefined {
  const given = output ?? request?.outputSchema?.schema;
  if (given === undefined) return undefined;
  const json = schemaOf(given, output === undefined ? "request.outputSchema.schema" : "output");
  const wanted = request?.outputSchema ?? { name: "answer", schema: json };
  return {
    wanted,
    start() {
      let repairs = 0;
      return async (text) => {
        const read = await readAnswer(text, given);
        if ("value" in read) return read;
        const problem = `The answer does not fit the schema it was asked for: ${read.problem}.`;
        if (repairs++ >= maxRepairs) return { problem };
        const words = `${problem} Answer again with nothing but JSON of this schema:\n${JSON.stringify(json)}`;
        return { again: ownMessage(words) };
      };
    },
  };
}

function schemaOf(given: InputSchema, name: string): JsonObject {
  if (!isObject(given) && typeof given !== "function")
    throw new TypeError(`createSession: ${name} must be a Standard Schema or a JSON Schema`);
  if (isFreeform(given)) throw new TypeError(`createSession: ${name} is text in any case; leave it out`);
  const { json } = toSchema(given);
  const [fault] = findFaults(json);
  if (fault) throw new TypeError(`createSession: ${name}: ${fault.what} (at ${fault.at.join("/")})`);
  return json;
}

async function readAnswer(
  text: string,
  schema: InputSchema,
): Promise<{ readonly value: Json } | { readonly problem: string }> {
  const read = parseJson(withoutFence(text));
  if (!read.ok) return { problem: text.trim() === "" ? "it is empty" : "it is not JSON" };
  const checked = await toSchema(schema).validate(read.value);
  // A library's transform may return more than JSON; its type says so
  if (checked.ok) return { value: checked.value as Json };
  return {
    problem: checked.issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; "),
  };
}

/** Models that were told about the schema only in words put a Markdown fence around the answer. */
function withoutFence(text: string): string {
  return /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text;
}
