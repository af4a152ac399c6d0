/** Reads the part of Lark's grammar language that tools use. Undefined for what it does not know. */
export type Expression =
  | { readonly type: "text"; readonly value: string }
  | { readonly type: "pattern"; readonly value: RegExp }
  | { readonly type: "rule"; readonly name: string }
  | { readonly type: "sequence"; readonly parts: readonly Expression[] }
  | { readonly type: "choice"; readonly options: readonly Expression[] }
  | { readonly type: "repeat"; readonly part: Expression; readonly min: number; readonly max: number };

/** Lark's `common` names that appear in tool grammars. */
const common = new Map([
  ["LF", "\\n"],
  ["CR", "\\r"],
  ["NEWLINE", "(?:\\r?\\n)+"],
  ["WS", "[ \\t\\f\\r\\n]+"],
  ["WS_INLINE", "[ \\t]+"],
  ["INT", "\\d+"],
  ["DIGIT", "\\d"],
  ["NUMBER", "\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?"],
  ["SIGNED_NUMBER", "[+-]?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?"],
  ["SIGNED_INT", "[+-]?\\d+"],
  ["LETTER", "[A-Za-z]"],
  ["WORD", "[A-Za-z]+"],
  ["CNAME", "[A-Za-z_]\\w*"],
  ["ESCAPED_STRING", '"(?:[^"\\\\]|\\\\.)*"'],
]);

export function parseGrammar(definition: string): ReadonlyMap<string, Expression> | undefined {
  const rules = new Map<string, Expression>();
  for (const statement of statements(definition)) {
    const imported = /^%import\s+common\.(\w+)(?:\s*->\s*(\w+))?$/.exec(statement);
    if (imported) {
      const pattern = common.get(imported[1]!);
      if (pattern === undefined) return undefined;
      rules.set(imported[2] ?? imported[1]!, { type: "pattern", value: new RegExp(pattern, "uy") });
      continue;
    }
    const rule = /^[?!]*(\w+)(?:\.-?\d+)?\s*:([^]*)$/.exec(statement);
    const body = rule && parseBody(rule[2]!);
    // %ignore, templates, anything else: such a grammar is not judged here.
    if (!rule || !body) return undefined;
    rules.set(rule[1]!, body);
  }
  return rules;
}

/** A statement goes on over lines that are indented or start with `|`. */
function statements(definition: string): readonly string[] {
  const found: string[] = [];
  for (const line of definition.split(/\r?\n/)) {
    if (line.trim() === "" || /^\s*\/\/(?!.*\/\s*$)/.test(line)) continue;
    if (/^\s|^\|/.test(line) && found.length > 0) found[found.length - 1] += `\n${line}`;
    else found.push(line.trim());
  }
  return found;
}

const token = /\s*(?:("(?:[^"\\]|\\.)*")(i?)|\/((?:[^/\\\n]|\\.)+)\/([imslux]*)|(\w+)|(\.\.|->|[()[\]|?*+~]))/y;

interface Token {
  readonly kind: "text" | "pattern" | "word" | "sign";
  readonly value: string;
  readonly flags: string;
}

function tokenize(body: string): readonly Token[] | undefined {
  const tokens: Token[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < body.trimEnd().length) {
    const found = token.exec(body);
    if (!found) return undefined;
    const [, quoted, quotedFlags, pattern, flags, word, sign] = found;
    if (quoted !== undefined) tokens.push({ kind: "text", value: quoted, flags: quotedFlags ?? "" });
    else if (pattern !== undefined) tokens.push({ kind: "pattern", value: pattern, flags: flags ?? "" });
    else if (word !== undefined) tokens.push({ kind: "word", value: word, flags: "" });
    else tokens.push({ kind: "sign", value: sign!, flags: "" });
  }
  return tokens;
}

/** Thrown inside only: the grammar uses something we do not read. */
class Unknown extends Error {}

/** The tokens of one rule, and how far they are read. */
interface Cursor {
  readonly tokens: readonly Token[];
  at: number;
}

function parseBody(body: string): Expression | undefined {
  const tokens = tokenize(body);
  if (!tokens) return undefined;
  const cursor = { tokens, at: 0 };
  try {
    const whole = readChoice(cursor);
    return cursor.at === tokens.length ? whole : undefined;
  } catch (error) {
    if (error instanceof Unknown || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isAt({ tokens, at }: Cursor, sign: string): boolean {
  return tokens[at]?.kind === "sign" && tokens[at]?.value === sign;
}

/** Passes the sign if it is next. */
function skip(cursor: Cursor, sign: string): boolean {
  const isThere = isAt(cursor, sign);
  if (isThere) cursor.at++;
  return isThere;
}

function readChoice(cursor: Cursor): Expression {
  const options = [readSequence(cursor)];
  while (skip(cursor, "|")) options.push(readSequence(cursor));
  return options.length === 1 ? options[0]! : { type: "choice", options };
}

const enders = ["|", ")", "]"];

function readSequence(cursor: Cursor): Expression {
  const parts: Expression[] = [];
  while (cursor.at < cursor.tokens.length && !enders.some((end) => isAt(cursor, end))) {
    // An alias names a branch of the tree; it matches nothing.
    if (skip(cursor, "->")) cursor.at++;
    else parts.push(readRepeated(cursor));
  }
  return parts.length === 1 ? parts[0]! : { type: "sequence", parts };
}

const ranges: ReadonlyMap<string, readonly [min: number, max: number]> = new Map([
  ["?", [0, 1]],
  ["*", [0, Infinity]],
  ["+", [1, Infinity]],
]);

function readRepeated(cursor: Cursor): Expression {
  const part = readAtom(cursor);
  const next = cursor.tokens[cursor.at];
  const range = next?.kind === "sign" ? ranges.get(next.value) : undefined;
  if (range) {
    cursor.at++;
    return { type: "repeat", part, min: range[0], max: range[1] };
  }
  if (!skip(cursor, "~")) return part;
  const min = readCount(cursor);
  return { type: "repeat", part, min, max: skip(cursor, "..") ? readCount(cursor) : min };
}

function readCount(cursor: Cursor): number {
  const count = Number(cursor.tokens[cursor.at++]?.value);
  if (!Number.isInteger(count)) throw new Unknown();
  return count;
}

function readAtom(cursor: Cursor): Expression {
  const next = cursor.tokens[cursor.at++];
  if (next?.kind === "word") return { type: "rule", name: next.value };
  if (next?.kind === "pattern") return { type: "pattern", value: toPattern(next.value, next.flags) };
  if (next?.kind === "text") return literal(next);
  const close = next?.value === "(" ? ")" : next?.value === "[" ? "]" : undefined;
  if (close === undefined) throw new Unknown();
  const inner = readChoice(cursor);
  if (!skip(cursor, close)) throw new Unknown();
  return close === "]" ? { type: "repeat", part: inner, min: 0, max: 1 } : inner;
}

function literal({ value, flags }: Token): Expression {
  const text = JSON.parse(value.replaceAll("\\'", "'")) as string; // Quoted as in JSON; a SyntaxError means we do not know it.
  if (flags === "") return { type: "text", value: text };
  return { type: "pattern", value: toPattern(text.replaceAll(/[$()*+.?[\\\]^{|}/]/g, "\\$&"), "i") };
}

function toPattern(source: string, flags: string): RegExp {
  const known = [...flags].filter((flag) => "ims".includes(flag)).join("");
  return new RegExp(source, `${known}uy`);
}
