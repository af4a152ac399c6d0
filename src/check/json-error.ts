/**
 * Finds where a text stops being JSON, and what was expected there. It reads the text itself, because
 * JavaScript engines word their errors differently.
 */
export interface JsonError {
  /** Index of the first character that cannot be part of complete JSON, or the text's length if it just ends. */
  readonly position: number;
  readonly expected: string;
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /true|false|null/y;
const space = /[ \t\n\r]*/y;
/** Every character from the space upwards except the quote and the backslash. */
const plain = /[ !#-[\]-\u{10ffff}]*/uy;
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
/** What is left of a word, a number or an escape when the text ends in the middle of it. */
const cutWord = /(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-)$/y;
const cutNumber = /(?:\.|[eE][+-]?)$/y;
const cutEscape = /\\(?:u[0-9a-fA-F]{0,3})?$/y;

type Want = "value" | "key" | "after" | "value or ]" | "key or }" | "end";

/** A text, and how far it has been read. */
interface Scan {
  readonly text: string;
  at: number;
  /** The objects and lists that are open at this place. */
  readonly open: ("{" | "[")[];
}

/**
 * Linear and without recursion, because a hostile text may nest a million levels deep. Undefined if
 * the text is JSON.
 */
export function locateJsonError(text: string): JsonError | undefined {
  const scan: Scan = { text, at: 0, open: [] };
  let want: Want | JsonError = "value";
  while (typeof want === "string" && want !== "end") want = step(scan, want);
  return typeof want === "string" ? undefined : want;
}

function fault(scan: Scan, expected: string): JsonError {
  return { position: scan.at, expected };
}

/** Skips what the pattern matches at this place. */
function skip(scan: Scan, pattern: RegExp): boolean {
  pattern.lastIndex = scan.at;
  const found = pattern.exec(scan.text);
  if (found) scan.at += found[0].length;
  return found !== null;
}

function step(scan: Scan, want: Want): Want | JsonError {
  skip(scan, space);
  const char = scan.text[scan.at];
  if (want === "after") return readAfter(scan, char);
  if ((want === "value or ]" && char === "]") || (want === "key or }" && char === "}")) return close(scan);
  return want === "key" || want === "key or }" ? readKey(scan, char, want) : readValue(scan, char);
}

function close(scan: Scan): Want {
  scan.at++;
  scan.open.pop();
  return "after";
}

function readAfter(scan: Scan, char: string | undefined): Want | JsonError {
  const container = scan.open.at(-1);
  if (container === undefined)
    return char === undefined ? "end" : fault(scan, "nothing more after the end of the JSON value");
  const closer = container === "{" ? "}" : "]";
  if (char === closer) return close(scan);
  if (char !== ",") return fault(scan, `',' or '${closer}'`);
  scan.at++;
  return container === "{" ? "key" : "value";
}

function readKey(scan: Scan, char: string | undefined, want: Want): Want | JsonError {
  if (char !== '"') return fault(scan, want === "key" ? "a key in double quotes" : "a key in double quotes or '}'");
  const broken = readString(scan);
  if (broken) return broken;
  skip(scan, space);
  if (scan.text[scan.at] !== ":") return fault(scan, "':' after the key");
  scan.at++;
  return "value";
}

function readValue(scan: Scan, char: string | undefined): Want | JsonError {
  if (char === "{" || char === "[") {
    scan.at++;
    scan.open.push(char);
    return char === "{" ? "key or }" : "value or ]";
  }
  if (char === '"') return readString(scan) ?? "after";
  if (skip(scan, word)) return "after";
  if (skip(scan, number)) return skip(scan, cutNumber) ? fault(scan, "a digit") : "after";
  return fault(scan, skip(scan, cutWord) ? "the rest of the value" : "a JSON value");
}

function readString(scan: Scan): JsonError | undefined {
  const start = scan.at++;
  for (;;) {
    skip(scan, plain);
    const char = scan.text[scan.at];
    if (char === '"') {
      scan.at++;
      return undefined;
    }
    if (char === undefined) return fault(scan, `the end of the string that starts at character ${start + 1}`);
    if (char !== "\\") return fault(scan, "control characters escaped (a line break is \\n)");
    if (skip(scan, escape)) continue;
    if (skip(scan, cutEscape)) return fault(scan, "the rest of the escape");
    return fault(scan, 'a legal escape (\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX)');
  }
}

/** One sentence that says where the error is, what stands there, and what was expected. */
export function describeJsonError(text: string, error: JsonError): string {
  const { position } = error;
  const line = text.slice(0, position).split("\n").length;
  const column = position - text.lastIndexOf("\n", position - 1);
  const before = JSON.stringify(text.slice(Math.max(0, position - 30), position)).slice(1, -1);
  const after = JSON.stringify(text.slice(position, position + 30)).slice(1, -1);
  const where = `character ${position + 1} (line ${line}, column ${column})`;
  if (position >= text.length) return `it ends too early at ${where}, after \`${before}\`: expected ${error.expected}`;
  return `at ${where}, after \`${before}\`, there is \`${after}\`: expected ${error.expected}`;
}
