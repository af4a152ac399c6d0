/** One word of the syntax tree as the words that a command would get, or the answer that only running it would tell. */
import type { Word, WordPart } from "unbash";
import { expandGlob, type GlobPiece } from "./glob.ts";
import type { ShellWord } from "./found.ts";

export interface WordContext {
  readonly cwds: readonly string[];
  readonly home: string;
  /** A variable was set on this line, so no variable has its known value. */
  readonly assigned: boolean;
  readonly variables: ReadonlyMap<string, string>;
  /** Whether the names in this folder may be listed. */
  readonly mayList: (folder: string, cwd: string) => boolean;
}

/** Usually one word; a file pattern gives as many as there are matches. */
export function readWord(node: Word, context: WordContext): readonly ShellWord[] {
  const raw = node.text;
  const parts = node.parts;
  if (parts === undefined) return [{ raw, value: tilde(raw, node.value, context) }];
  if (parts.some(isPattern) && parts.every((part) => isPattern(part) || literal(part, context) !== undefined)) {
    return expandPattern(raw, parts, context);
  }
  const values = parts.map((part) => literal(part, context));
  return [{ raw, value: values.includes(undefined) ? undefined : tilde(raw, values.join(""), context) }];
}

function isPattern(part: WordPart): boolean {
  return part.type === "Glob" && (part.kind !== "bracket" || part.parts.every((inner) => inner.type === "Literal"));
}

function expandPattern(raw: string, parts: readonly WordPart[], context: WordContext): readonly ShellWord[] {
  const pieces: GlobPiece[] = parts.map((part) =>
    isPattern(part) ? { text: part.text, literal: false } : { text: literal(part, context) ?? "", literal: true },
  );
  const unknown = [{ raw, value: undefined, pattern: pieces }];
  const [cwd] = context.cwds;
  if (cwd === undefined || context.cwds.length > 1 || raw.startsWith("~")) return unknown;
  const names = expandGlob(pieces, cwd, (folder) => context.mayList(folder, cwd));
  if (names === undefined) return unknown;
  // Without a match bash hands the pattern over as it is written.
  return names.length === 0
    ? [{ raw, value: pieces.map((piece) => piece.text).join(""), pattern: pieces }]
    : names.map((value) => ({ raw, value, pattern: pieces }));
}

function literal(part: WordPart, context: WordContext, quoted = false): string | undefined {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return part.value;
    case "DoubleQuoted": {
      const values = part.parts.map((inner) => literal(inner, context, true));
      return values.includes(undefined) ? undefined : values.join("");
    }
    case "SimpleExpansion":
      return variable(part.text, context, quoted);
    default:
      return undefined;
  }
}

/** The few variables whose value is known and safe. */
function variable(text: string, context: WordContext, quoted: boolean): string | undefined {
  const looped = context.variables.get(text.slice(1));
  if (looped !== undefined) return quoted || /^[\w./-]+$/.test(looped) ? looped : undefined;
  if (context.assigned) return undefined;
  if (text === "$?" || text === "$#") return "0";
  const [cwd] = context.cwds;
  const value = text === "$PWD" && context.cwds.length === 1 ? cwd : text === "$HOME" ? context.home : undefined;
  return value !== undefined && /^[\w./-]+$/.test(value) ? value : undefined;
}

function tilde(raw: string, value: string, context: WordContext): string | undefined {
  if (!raw.startsWith("~")) return /[=:]~/.test(raw) && !/['"\\]/.test(raw) ? undefined : value;
  if (context.assigned) return undefined;
  if (value === "~") return context.home;
  return value.startsWith("~/") ? context.home + value.slice(1) : undefined;
}
