/** Where a text stops being JSON, and what was expected there. Reads on its own: engines word their errors differently. */
export interface JsonError {
  /** Index of the first character that cannot be part of whole JSON; the text's length when it just ends. */
  readonly position: number;
  readonly expected: string;
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const space = /[ \t\n\r]*/y;
/** Everything from the space upwards but the quote and the backslash. */
const plain = /[ !#-[\]-\u{10ffff}]*/uy;
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

type Want = "value" | "key" | "after" | "value or ]" | "key or }" | "end";

/** Linear, and without recursion: a hostile text may nest a million deep. Undefined when the text is JSON. */
export function locateJsonError(text: string): JsonError | undefined {
  const scanner = createScanner(text);
  let want: Want | JsonError = "value";
  while (typeof want === "string" && want !== "end") want = scanner.step(want);
  return typeof want === "string" ? undefined : want;
}

function createScanner(text: string): { readonly step: (want: Want) => Want | JsonError } {
  const open: ("{" | "[")[] = [];
  let at = 0;
  const fault = (expected: string): JsonError => ({ position: at, expected });
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found !== null;
  };

  function step(want: Want): Want | JsonError {
    skip(space);
    const char = text[at];
    if (want === "after") return readAfter(char);
    if ((want === "value or ]" && char === "]") || (want === "key or }" && char === "}")) {
      at++;
      open.pop();
      return "after";
    }
    return want === "key" || want === "key or }" ? readKey(char, want) : readValue(char);
  }

  function readAfter(char: string | undefined): Want | JsonError {
    const container = open.at(-1);
    if (container === undefined)
      return char === undefined ? "end" : fault("nothing more after the end of the JSON value");
    const close = container === "{" ? "}" : "]";
    if (char !== "," && char !== close) return fault(`',' or '${close}'`);
    at++;
    if (char === ",") return container === "{" ? "key" : "value";
    open.pop();
    return "after";
  }

  function readKey(char: string | undefined, want: Want): Want | JsonError {
    if (char !== '"') return fault(want === "key" ? "a key in double quotes" : "a key in double quotes or '}'");
    const broken = readString();
    if (broken) return broken;
    skip(space);
    if (text[at] !== ":") return fault("':' after the key");
    at++;
    return "value";
  }

  function readValue(char: string | undefined): Want | JsonError {
    if (char === "{" || char === "[") {
      at++;
      open.push(char);
      return char === "{" ? "key or }" : "value or ]";
    }
    if (char === '"') return readString() ?? "after";
    const word = ["true", "false", "null"].find((candidate) => text.startsWith(candidate, at));
    if (word !== undefined) {
      at += word.length;
      return "after";
    }
    return skip(number) ? "after" : fault("a JSON value");
  }

  function readString(): JsonError | undefined {
    const start = at++;
    for (;;) {
      skip(plain);
      const char = text[at];
      if (char === '"') {
        at++;
        return undefined;
      }
      if (char === undefined) return fault(`the end of the string that starts at character ${start + 1}`);
      if (char !== "\\") return fault("control characters escaped (a line break is \\n)");
      if (!skip(escape)) return fault('a legal escape (\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX)');
    }
  }

  return { step };
}

/** One sentence: where, what stands there, what was expected. */
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
