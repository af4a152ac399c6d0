/**
 * What a sed script can do: only print, read or write other files, or run programs. Every command must
 * be a known one. What is not understood is reported as such, and a person is asked.
 */

export type SedEffect = "prints" | "reads" | "writes" | "runs" | "unknown";

const rank: Readonly<Record<SedEffect, number>> = { prints: 0, reads: 1, writes: 2, runs: 3, unknown: 4 };
const maxLength = 20_000;

export function sedEffect(script: string): SedEffect {
  if (script.length > maxLength || script.includes("\0")) return "unknown";
  const scanner = { text: script, at: 0 };
  let worst: SedEffect = "prints";
  for (;;) {
    skip(scanner, /[\s;]*/y);
    if (scanner.at >= script.length) return worst;
    if (!readAddresses(scanner)) return "unknown";
    skip(scanner, /[\s!]*/y);
    const effect = readCommand(scanner);
    if (effect === "unknown") return effect;
    if (rank[effect] > rank[worst]) worst = effect;
  }
}

const doubts: Readonly<Record<SedEffect, string | undefined>> = {
  prints: undefined,
  reads: "the sed script reads another file",
  writes: "the sed script writes a file",
  runs: "the sed script runs a program",
  unknown: "the sed script is not understood",
};

/** Why the script might do more than print, or undefined. */
export function sedScriptDoubt(script: string): string | undefined {
  return doubts[sedEffect(script)];
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
  if (!readAddress(scanner, /\$|\d+(~\d+)?/y)) return false;
  skip(scanner, /[ \t]*/y);
  if (scanner.text[scanner.at] !== ",") return true;
  skip(scanner, /,[ \t]*/y);
  const before = scanner.at;
  return readAddress(scanner, /\$|[+~]?\d+/y) && scanner.at > before;
}

function readAddress(scanner: Scanner, plain: RegExp): boolean {
  const next = scanner.text[scanner.at];
  if (next === "/" || next === "\\") {
    scanner.at++;
    const delimiter = next === "/" ? next : (scanner.text[scanner.at++] ?? "");
    if (!isDelimiter(delimiter) || !readUntil(scanner, delimiter)) return false;
    skip(scanner, /[IM]*/y);
  } else skip(scanner, plain);
  return true;
}

function isDelimiter(char: string): boolean {
  return /^[/|,:#@%!_~^=+;&"'-]$/.test(char);
}

/** Reads to the closing delimiter. False if there is none, or if a bracket makes it unsure which one closes. */
function readUntil(scanner: Scanner, delimiter: string): boolean {
  let inBracket = false;
  for (; scanner.at < scanner.text.length; scanner.at++) {
    const char = scanner.text[scanner.at]!;
    const next = scanner.text[scanner.at + 1] ?? "";
    if (char === "\n") return false;
    if (char === "\\") {
      // Within a set a backslash is a character, so the bracket behind it counts for some and not for others.
      if (next === "\n" || (inBracket && /[[\]]/.test(next))) return false;
      scanner.at++;
    } else if (char === delimiter) {
      if (inBracket) return false;
      scanner.at++;
      return true;
    } else if (inBracket) {
      if (char === "]") inBracket = false;
      if (char !== "[" || !/[.:=]/.test(next)) continue;
      // The bracket that ends `[:alpha:]` does not end the set around it.
      const named = skip(scanner, /\[([.:=])\w*\1(?=\])/y);
      if (named === "" || named.includes(delimiter)) return false;
    } else if (char === "[") {
      inBracket = true;
      // A bracket that comes first is a character of the set: `[]/]` goes on behind the slash.
      if (skip(scanner, /\[\^?(?=\])/y).includes(delimiter)) return false;
    }
  }
  return false;
}

function readCommand(scanner: Scanner): SedEffect {
  const name = scanner.text[scanner.at++] ?? "";
  switch (name) {
    case "{":
      return "prints";
    case "}":
      return endOfCommand(scanner);
    case "#":
      skip(scanner, /[^\n]*/y);
      return "prints";
    case "s":
    case "y":
      return readSubstitution(scanner, name);
    case ":":
    case "b":
    case "t":
    case "T":
      skip(scanner, /[ \t]*[A-Za-z0-9_.-]*/y);
      return endOfCommand(scanner);
    case "a":
    case "i":
    case "c":
      return readText(scanner);
    case "q":
    case "Q":
    case "l":
    case "L":
      skip(scanner, /[ \t]*\d*/y);
      return endOfCommand(scanner);
    case "r":
    case "R":
      skip(scanner, /[^\n]*/y);
      return "reads";
    case "w":
    case "W":
      skip(scanner, /[^\n]*/y);
      return "writes";
    case "e":
      skip(scanner, /[^\n]*/y);
      return "runs";
    default:
      return name !== "" && "pdPDgGhHxnN=zF".includes(name) ? endOfCommand(scanner) : "unknown";
  }
}

function endOfCommand(scanner: Scanner): SedEffect {
  skip(scanner, /[ \t]*/y);
  const next = scanner.text[scanner.at];
  return next === undefined || /[;\n}#]/.test(next) ? "prints" : "unknown";
}

/** Inserted text goes to the end of the line. A backslash before the line break continues it. */
function readText(scanner: Scanner): SedEffect {
  skip(scanner, /[ \t]*(\\[ \t]*\n)?/y);
  const text = skip(scanner, /(?:[^\\\n]|\\[^])*/y);
  return text === "" || scanner.text[scanner.at] === "\\" ? "unknown" : "prints";
}

function readSubstitution(scanner: Scanner, name: "s" | "y"): SedEffect {
  const delimiter = scanner.text[scanner.at++] ?? "";
  if (!isDelimiter(delimiter) || !readUntil(scanner, delimiter) || !readReplacement(scanner, delimiter))
    return "unknown";
  if (name === "y") return endOfCommand(scanner);
  const flags = skip(scanner, /[gpiImMe0-9]*/y);
  if (scanner.text[scanner.at] === "w") {
    skip(scanner, /[^\n]*/y);
    return flags.includes("e") ? "runs" : "writes";
  }
  const end = endOfCommand(scanner);
  return flags.includes("e") ? "runs" : end;
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
