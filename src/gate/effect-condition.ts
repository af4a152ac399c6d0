/** What a rule may say about a held command's effects. All of a rule's conditions must hold. */
import { isObject } from "../base/json.ts";
import { nearest } from "../base/text.ts";

/** What a rule asks of the effects of a held run. */
export interface EffectCondition {
  /** Nothing outside these patterns was touched. */
  readonly only?: readonly string[];
  /** Something was removed that matches one of these. `tracked` means something that git tracks. */
  readonly removes?: string | readonly string[];
  /** More than this many files were touched. */
  readonly more_than?: number;
  /** Something became executable, or now runs as its owner. `true` means either. */
  readonly mode?: true | "executable" | "set-id";
  /** A link leads out of the workspace. */
  readonly links_out?: true;
  /** Something protected was touched: git's settings and hooks, our own files. */
  readonly protected?: true;
  /** More bytes than this were written. */
  readonly bytes_over?: number;
}

const keys = ["only", "removes", "more_than", "mode", "links_out", "protected", "bytes_over"] as const;

/** What is wrong with a condition, in one sentence, or undefined. */
export function conditionProblem(value: unknown): string | undefined {
  if (!isObject(value)) return 'effects must be a table, such as { only = ["dist/**"] }';
  const known: readonly string[] = keys;
  const stranger = Object.keys(value).find((key) => !known.includes(key));
  if (stranger !== undefined) {
    const [guess] = nearest(stranger, known, 1);
    return `effects: unknown key '${stranger}'${guess === undefined ? "" : `; did you mean '${guess}'?`}`;
  }
  if (Object.keys(value).length === 0) return "effects must name a condition, or it would match everything";
  const { only, removes, mode } = value;
  if (only !== undefined && !isTexts(only)) return "effects: only must be a list of patterns";
  if (removes !== undefined && !isTexts(removes) && !isText(removes))
    return 'effects: removes must be a pattern, a list of patterns, or "tracked"';
  for (const key of ["more_than", "bytes_over"])
    if (value[key] !== undefined && (!Number.isSafeInteger(value[key]) || Number(value[key]) < 0))
      return `effects: ${key} must be a whole number`;
  if (mode !== undefined && mode !== true && mode !== "executable" && mode !== "set-id")
    return 'effects: mode must be true, "executable" or "set-id"';
  for (const key of ["links_out", "protected"])
    if (value[key] !== undefined && value[key] !== true) return `effects: ${key} can only be true`;
  return undefined;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isText);
}

/** The condition as it would be written in a file. */
export function describeCondition(condition: EffectCondition): string {
  return `{ ${Object.entries(condition)
    .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    .join(", ")} }`;
}
