/**
 * Takes the text of a freeform call out of whatever a wire that has only functions wrapped it in. A
 * regular expression is checked here. A Lark grammar only guides the model: providers sample under it,
 * and elsewhere the handler reads the text itself and can say better what is wrong with it.
 */
import { CallError } from "../base/error.ts";
import { isObject, parseJson } from "../base/json.ts";
import type { Bound } from "../spec/call.ts";
import type { Freeform } from "../spec/freeform.ts";

export function readText(bound: Bound, freeform: Freeform, notes: string[]): string {
  const raw = bound.arguments;
  const wrapped = bound.kind === "custom" ? undefined : unwrap(raw, bound.tool.name, freeform.label);
  const text = wrapped ?? raw;
  if (wrapped !== undefined) notes.push("the text was unwrapped from JSON");
  const pattern = freeform.syntax === "regex" ? toPattern(freeform.definition) : undefined;
  if (pattern === undefined || pattern.test(text)) return text;
  for (const [other, note] of otherReadings(raw, text, bound.tool.name, freeform.label)) {
    if (other === text || !pattern.test(other)) continue;
    notes.push(note);
    return other;
  }
  throw new CallError("invalid_input", `The input of ${bound.tool.name} does not match ${freeform.definition}.`, {
    hint: "Send the text again in full, following the pattern in the tool's description.",
  });
}

/** Undefined for an expression that JavaScript cannot read, because it was written for another engine. */
function toPattern(definition: string | undefined): RegExp | undefined {
  if (definition === undefined) return undefined;
  try {
    return new RegExp(`^(?:${definition})$`, "u");
  } catch {
    return undefined;
  }
}

/** What models are known to put around the text. Tried only if the text as it stands does not match the pattern. */
function otherReadings(
  raw: string,
  text: string,
  tool: string,
  label: string | undefined,
): readonly (readonly [string, string])[] {
  const inner = unwrap(raw, tool, label) ?? text;
  const bare = stripFence(inner);
  return [
    [inner, "the text was unwrapped from JSON"],
    [`${inner.trimEnd()}\n`, "a line break was added at the end"],
    [bare, "a fence around the text was removed"],
    [`${bare.trimEnd()}\n`, "a fence around the text was removed"],
    [`${bare.trim()}\n`, "space around the text was removed"],
    [bare.trim(), "space around the text was removed"],
  ];
}

const names = ["input", "content", "patch", "code", "text", "command"];

/** Undefined if the text is not JSON that wraps the real text. */
function unwrap(raw: string, tool: string, label: string | undefined): string | undefined {
  if (!/^\s*["{[]/.test(raw)) return undefined;
  const parsed = parseJson(raw);
  if (!parsed.ok) return undefined;
  const { value } = parsed;
  if (typeof value === "string") return value;
  if (!isObject(value)) return undefined;
  for (const name of label === undefined ? names : [label, ...names]) {
    const found = Object.hasOwn(value, name) ? value[name] : undefined;
    if (typeof found === "string") return found;
    // ["apply_patch", "*** Begin Patch…"]: the tool's name as a command, and the text as its argument.
    if (Array.isArray(found) && found.length === 2 && found[0] === tool && typeof found[1] === "string")
      return found[1];
  }
  return undefined;
}

function stripFence(text: string): string {
  const fence =
    /^\s*```[^\n`]*\n([^]*?)\n?```\s*$/.exec(text) ??
    /^\s*(?:\w+\s+)?<<-?\s*(['"]?)(\w+)\1\s*\n([^]*?)\n?\2\s*$/.exec(text);
  return fence ? fence.at(-1)! : text;
}
