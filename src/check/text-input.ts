/** The text of a freeform call, out of whatever a function-only wire wrapped it in, checked against its grammar. */
import { CallError } from "../base/error.ts";
import { isObject, parseJson } from "../base/json.ts";
import type { Bound } from "../spec/call.ts";
import type { Freeform } from "../spec/freeform.ts";
import { checkLark, checkRegex, type GrammarVerdict } from "./lark.ts";

export function readText(bound: Bound, freeform: Freeform, notes: string[]): string {
  const raw = bound.arguments;
  const wrapped = bound.kind === "custom" ? undefined : unwrap(raw, bound.tool.name, freeform.label);
  const text = wrapped ?? raw;
  if (wrapped !== undefined) notes.push("the text was unwrapped from JSON");
  const verdict = checkGrammar(freeform, text);
  if (verdict.ok) return text;
  for (const [other, note] of otherReadings(raw, text, bound.tool.name, freeform.label)) {
    if (other === text || !checkGrammar(freeform, other).ok) continue;
    notes.push(note);
    return other;
  }
  throw grammarError(bound, freeform, text, verdict);
}

function checkGrammar(freeform: Freeform, text: string): GrammarVerdict {
  if (freeform.definition === undefined || freeform.unchecked === true) return { ok: true };
  return freeform.syntax === "lark" ? checkLark(freeform.definition, text) : checkRegex(freeform.definition, text);
}

/** Habits of models, tried only when the text as it stands does not follow the grammar. */
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

/** Undefined when the text is no JSON that wraps it. */
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
    // ["apply_patch", "*** Begin Patch…"]: the tool's name as a command, its text as the argument.
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

function grammarError(
  bound: Bound,
  freeform: Freeform,
  text: string,
  verdict: Extract<GrammarVerdict, { ok: false }>,
): CallError {
  const before = text.slice(0, verdict.position);
  const line = before.split("\n").length;
  const there = text
    .slice(before.lastIndexOf("\n") + 1)
    .split("\n", 1)[0]!
    .slice(0, 120);
  const message = `The input of ${bound.tool.name} does not follow its grammar: line ${line}, \`${there}\`; expected ${verdict.expected.join(" or ")}.`;
  return new CallError("invalid_input", message, {
    hint: `Send the text again in full, following the ${freeform.syntax === "lark" ? "Lark grammar" : "pattern"} in the tool's description.`,
    data: { position: verdict.position, line },
  });
}
