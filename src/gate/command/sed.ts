/** sed scripts that only print: no w, W, r, R, e, no flags that write or run, no text commands. What is not recognised asks. */

const plainCommands = new Set("pdPDgGhHxnNqQ=lzF");

/** Why the script might do more than print, or undefined. */
export function sedScriptDoubt(script: string): string | undefined {
  const scanner = { text: script, at: 0 };
  if (script.length > 2_000) return "the sed script is very long";
  for (;;) {
    skip(scanner, /[\s;{}]*/y);
    if (scanner.at >= script.length) return undefined;
    if (script[scanner.at] === "#") {
      // `#n` on the first line is -n; any comment ends with its line.
      skip(scanner, /[^\n]*/y);
      continue;
    }
    if (!readAddresses(scanner)) return "a sed address that is not understood";
    skip(scanner, /[\s!]*/y);
    if (script[scanner.at] === "{") continue;
    const doubt = readCommand(scanner);
    if (doubt !== undefined) return doubt;
  }
}

interface Scanner {
  readonly text: string;
  at: number;
}

function skip(scanner: Scanner, pattern: RegExp): string {
  pattern.lastIndex = scanner.at;
  const [match] = pattern.exec(scanner.text) ?? [""];
  scanner.at += match.length;
  return match;
}

function readAddresses(scanner: Scanner): boolean {
  for (let count = 0; count < 2; count++) {
    const next = scanner.text[scanner.at] ?? "";
    if (/[0-9$+~]/.test(next)) skip(scanner, /\$|[+~]?\d+(~\d+)?/y);
    else if (next === "/") {
      scanner.at++;
      if (!readUntil(scanner, "/")) return false;
      skip(scanner, /[IM]*/y);
    } else return next !== "\\" || count > 0;
    skip(scanner, /\s*/y);
    if (scanner.text[scanner.at] !== ",") return true;
    skip(scanner, /,\s*/y);
  }
  return true;
}

/** To the closing delimiter; false if there is none, or if a bracket makes it unsure which one closes. */
function readUntil(scanner: Scanner, delimiter: string): boolean {
  let inBracket = false;
  for (; scanner.at < scanner.text.length; scanner.at++) {
    const char = scanner.text[scanner.at]!;
    if (char === "\\") {
      scanner.at++;
      continue;
    }
    if (char === "\n") return false;
    if (char === delimiter) {
      if (inBracket) return false;
      scanner.at++;
      return true;
    }
    if (char === "[") inBracket = true;
    else if (char === "]") inBracket = false;
  }
  return false;
}

function readCommand(scanner: Scanner): string | undefined {
  const name = scanner.text[scanner.at++] ?? "";
  if (name === "s" || name === "y") return readSubstitute(scanner, name);
  if (!plainCommands.has(name)) return `the sed command '${name}'`;
  skip(scanner, /[ \t]*\d*/y);
  const rest = skip(scanner, /[ \t]*/y) && scanner.text[scanner.at];
  return rest === undefined || rest === "" || /[\n;}]/.test(scanner.text[scanner.at] ?? "\n")
    ? undefined
    : "a sed script that is not understood";
}

function readSubstitute(scanner: Scanner, name: string): string | undefined {
  const delimiter = scanner.text[scanner.at++] ?? "";
  if (!/[/|,:#@%!_~^=+;-]/.test(delimiter)) return "an unusual sed delimiter";
  if (!readUntil(scanner, delimiter) || !readReplacement(scanner, delimiter))
    return "a sed substitution that is not understood";
  if (name === "y") return undefined;
  const flags = skip(scanner, /[^\s;}\n]*/y);
  return /^[gpiIM0-9]*$/.test(flags) && !/^\s*[weW]/.test(scanner.text.slice(scanner.at).split(/[;\n}]/)[0] ?? "")
    ? undefined
    : "a sed flag that writes or runs something";
}

function readReplacement(scanner: Scanner, delimiter: string): boolean {
  for (; scanner.at < scanner.text.length; scanner.at++) {
    const char = scanner.text[scanner.at]!;
    if (char === "\\") scanner.at++;
    else if (char === "\n") return false;
    else if (char === delimiter) {
      scanner.at++;
      return true;
    }
  }
  return false;
}
