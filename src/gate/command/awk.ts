/**
 * What an awk program can do: only print, write files, or run programs and read other files. Every
 * token must be a known one. Anything else counts as running, so that no unusual spelling can slip
 * through.
 */

export type Effect = "prints" | "writes" | "runs";

const keywords = new Set(
  "BEGIN END if else while for do break continue next nextfile exit return delete in function func print printf switch case default".split(
    " ",
  ),
);

/** Functions that only compute. */
const functions = new Set(
  "length substr index split sub gsub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper gensub strftime systime mktime asort asorti strtonum and or xor lshift rshift compl isarray typeof patsplit".split(
    " ",
  ),
);

/** awk's own variables that hold only what is being read. */
const specials = new Set(
  "NF NR FNR FS OFS ORS RS FILENAME SUBSEP RSTART RLENGTH CONVFMT OFMT IGNORECASE RT FIELDWIDTHS FPAT".split(" "),
);

/** Words in lower case that are not variables. */
const reserved = new Set(["system", "getline", "close", "fflush", "extension", "include", "load", "namespace"]);

const maxLength = 20_000;

interface Token {
  readonly kind: "name" | "number" | "string" | "regex" | "mark" | "newline";
  readonly text: string;
}

export function awkEffect(program: string): Effect {
  const tokens = tokenize(program);
  return tokens === undefined ? "runs" : effectOf(tokens);
}

/** Whether `name=value` may be passed to awk, that is, whether the name is an ordinary variable. */
export function isPlainAwkVariable(name: string): boolean {
  return specials.has(name) || isOwnVariable(name);
}

function isOwnVariable(name: string): boolean {
  return /^([a-z_]\w*|[A-Z])$/.test(name) && !reserved.has(name) && !keywords.has(name) && !functions.has(name);
}

/** Undefined if we cannot be sure that awk reads the text in the same way. */
function tokenize(text: string): readonly Token[] | undefined {
  if (text.length > maxLength) return undefined;
  const tokens: Token[] = [];
  const next =
    /[ \t\r]+|(#[^\n\\]*)(?=\n|$)|(\n)|("(?:[^"\\\n]|\\[^\n])*")|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![A-Za-z_0-9.])|([A-Za-z_]\w*)|(\|\||&&|\+\+|--|[-+*%^!=<>~]=?|[/{}()[\];,?:$&|@\\'`])/y;
  for (let at = 0; at < text.length;) {
    if (text[at] === "/" && mayBeginRegex(tokens.at(-1))) {
      const regex = readRegex(text, at);
      if (regex === undefined) return undefined;
      tokens.push({ kind: "regex", text: regex });
      at += regex.length;
      continue;
    }
    // After these tokens awk decides by its grammar, which is not followed here.
    if (text[at] === "/" && isAmbiguous(tokens.at(-1)) && text.includes("/", at + 1)) return undefined;
    next.lastIndex = at;
    const match = next.exec(text);
    if (match === null) return undefined;
    at = next.lastIndex;
    const [whole, , newline, string, number, name, mark] = match;
    if (newline !== undefined) tokens.push({ kind: "newline", text: whole });
    else if (string !== undefined) tokens.push({ kind: "string", text: whole });
    else if (number !== undefined) tokens.push({ kind: "number", text: whole });
    else if (name !== undefined) tokens.push({ kind: "name", text: whole });
    else if (mark !== undefined) tokens.push({ kind: "mark", text: whole });
  }
  return tokens;
}

/** A slash begins a regular expression where an operand is expected; after an operand it divides. */
function mayBeginRegex(before: Token | undefined): boolean {
  if (before === undefined || before.kind === "newline") return true;
  if (before.kind === "name") return keywords.has(before.text);
  return before.kind === "mark" && !["]", ")", "++", "--", "$"].includes(before.text);
}

function isAmbiguous(before: Token | undefined): boolean {
  if (before === undefined) return false;
  return before.kind === "name" ? functions.has(before.text) : [")", "++", "--", "$"].includes(before.text);
}

/** Reads to the closing slash. Undefined if a bracket or a line break makes it unsure which slash closes. */
function readRegex(text: string, from: number): string | undefined {
  let inBracket = false;
  for (let at = from + 1; at < text.length; at++) {
    const char = text[at]!;
    if (char === "\n") return undefined;
    if (char === "\\") {
      if (inBracket || text[at + 1] === "\n") return undefined;
      at++;
    } else if (char === "/") return inBracket ? undefined : text.slice(from, at + 1);
    else if (char === "[") {
      if (inBracket) return undefined;
      inBracket = true;
      // A bracket that comes first is a character of the set.
      if (text[at + 1] === "^") at++;
      if (text[at + 1] === "]") at++;
    } else if (char === "]") inBracket = false;
  }
  return undefined;
}

function effectOf(tokens: readonly Token[]): Effect {
  const defined = new Set(
    tokens.flatMap((token, index) =>
      /^func(tion)?$/.test(tokens[index - 1]?.text ?? "") && tokens[index - 1]?.kind === "name" ? [token.text] : [],
    ),
  );
  let writes = false;
  // Inside a print statement and outside parentheses, `>` opens a file; elsewhere it compares. The statement need not
  // end at a line break, because it continues after a comma and after some operators.
  let printing = false;
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.kind === "name" && !isKnownName(token.text, tokens[index + 1]?.text === "(", defined)) return "runs";
    if (token.kind === "name" && /^printf?$/.test(token.text)) {
      printing = true;
      depth = 0;
    }
    if (token.kind !== "mark") continue;
    if ("|@\\'`&".includes(token.text)) return "runs";
    if (token.text === "(" || token.text === "[") depth++;
    else if (token.text === ")" || token.text === "]") depth--;
    else if (token.text === ";" || token.text === "{" || token.text === "}") printing = false;
    else if (token.text.startsWith(">") && ((printing && depth <= 0) || tokens[index - 1]?.text === "}")) writes = true;
  }
  return writes ? "writes" : "prints";
}

function isKnownName(name: string, called: boolean, defined: ReadonlySet<string>): boolean {
  if (keywords.has(name)) return true;
  if (functions.has(name)) return true;
  if (defined.has(name)) return isOwnVariable(name);
  return (!called && specials.has(name)) || (!called && isOwnVariable(name));
}
