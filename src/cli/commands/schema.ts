/** `callgate schema`: a JSON Schema as a provider takes it, and what was changed on the way. */
import { buildCommand } from "@stricli/core";
import { nearest } from "../../base/text.ts";
import { findTarget, normalizeSchema, schemaTargets, type SchemaTarget } from "../../schema/normalize.ts";
import { runBatch } from "../batch.ts";
import { toggle } from "../config/flags.ts";
import { printJson, readInput, runCommand, UsageError } from "../io.ts";

interface Flags {
  readonly target: string;
  readonly batch?: boolean;
}

async function schema(flags: Flags, file?: string): Promise<void> {
  const target = toTarget(flags.target);
  if (flags.batch) return runBatch((line) => normalizeLine(line, target));
  const text = await readInput(file);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(
      `${file === undefined || file === "-" ? "stdin" : file} is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`,
    );
  }
  printJson(normalizeSchema(value, target));
}

/** `{id, target, schema}`; the flag's target where the line names none. */
function normalizeLine(line: Record<string, unknown>, target: SchemaTarget): object {
  if (!Object.hasOwn(line, "schema")) return { error: "the line has no 'schema'" };
  return normalizeSchema(line["schema"], line["target"] === undefined ? target : toTarget(line["target"]));
}

function toTarget(name: unknown): SchemaTarget {
  const found = findTarget(name);
  if (found !== undefined) return found;
  const [guess] = nearest(String(name), schemaTargets, 1);
  throw new UsageError(
    `there is no target '${String(name)}'${guess === undefined ? "" : `; did you mean '${guess}'?`} (${schemaTargets.join(", ")})`,
  );
}

export const command = buildCommand({
  docs: {
    brief: "convert a JSON Schema to what a provider accepts",
    fullDescription: `Prints {schema, changes} for one schema from FILE or stdin. With --batch: JSON lines {id, target, schema} in, {id, schema, changes} out.`,
  },
  parameters: {
    flags: {
      target: {
        kind: "parsed",
        parse: String,
        brief: `for whom: ${schemaTargets.join(", ")}`,
        default: "openai",
        placeholder: "NAME",
      },
      batch: toggle("JSON lines in, JSON lines out"),
    },
    positional: {
      kind: "tuple",
      parameters: [{ brief: "a file, or - for stdin", parse: String, optional: true, placeholder: "FILE" }],
    },
  },
  func: (flags: Flags, file?: string) => runCommand(() => schema(flags, file)),
});
