import { CallError } from "../../index.ts";
import { createHunkParser, type Hunk } from "./parse.ts";

/** What is known of a patch that is still being written. */
export interface PatchProgress {
  readonly files: readonly PatchProgressFile[];
  /** The End marker has come. */
  readonly done: boolean;
  /** The first thing that is wrong with it; the rest is not read. */
  readonly error?: string;
}

interface PatchProgressFile {
  readonly path: string;
  readonly action: Hunk["kind"];
  readonly added: number;
  readonly removed: number;
}

/** Reads a patch while the model writes it. */
export interface PatchProgressReader {
  /** More of the text, cut anywhere; undefined as long as no further line is whole. */
  push(delta: string): PatchProgress | undefined;
}

/** Options of `createPatchProgress`. */
export interface ProgressOptions {
  /** The deltas are pieces of JSON arguments (`{"input":"*** Begin…`), not the text itself. */
  readonly json?: boolean;
}

/** Follows a patch as it arrives, with the parser that will read it in the end; costs each character once. */
export function createPatchProgress(options: ProgressOptions = {}): PatchProgressReader {
  const unknown = Object.keys(options).find((name) => name !== "json");
  if (unknown !== undefined)
    throw new TypeError(`createPatchProgress: there is no option '${unknown}'; there is 'json'`);
  const parser = createHunkParser();
  const decode = options.json === true ? createStringReader() : (delta: string) => delta;
  let rest = "";
  let number = 0;
  let state: "before" | "inside" | "done" = "before";
  let error: string | undefined;

  const readLine = (line: string) => {
    number++;
    const trimmed = line.trim();
    if (state === "before") {
      if (trimmed === "*** Begin Patch") state = "inside";
      return;
    }
    if (trimmed === "*** End Patch") {
      state = "done";
      return;
    }
    try {
      parser.line(line, number);
    } catch (thrown) {
      if (!CallError.is(thrown)) throw thrown;
      error = thrown.message;
    }
  };

  return {
    push(delta) {
      rest += decode(delta);
      const end = rest.lastIndexOf("\n");
      if (end < 0) return undefined;
      const whole = rest.slice(0, end).split("\n");
      rest = rest.slice(end + 1);
      for (const line of whole) {
        if (state !== "done" && error === undefined) readLine(line.endsWith("\r") ? line.slice(0, -1) : line);
      }
      const files = parser.soFar().map(toFile);
      return { files, done: state === "done", ...(error === undefined ? {} : { error }) };
    },
  };
}

function toFile(hunk: Hunk): PatchProgressFile {
  if (hunk.kind !== "update")
    return { path: hunk.path, action: hunk.kind, added: hunk.kind === "add" ? hunk.lines.length : 0, removed: 0 };
  const count = (op: string) =>
    hunk.chunks.reduce((sum, chunk) => sum + chunk.lines.filter((line) => line.op === op).length, 0);
  return { path: hunk.moveTo ?? hunk.path, action: "update", added: count("+"), removed: count("-") };
}

const escapes = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["b", "\b"],
  ["f", "\f"],
]);

/** The characters of the first string value in a JSON object, as they come. */
function createStringReader(): (delta: string) => string {
  let at: "key" | "value" | "text" | "over" = "key";
  let pending = "";

  /** How many characters an escape at the end of `pending` still needs: 0 when it is whole. */
  const takeEscape = (): string | undefined => {
    const kind = pending[1];
    if (kind === undefined || (kind === "u" && pending.length < 6)) return undefined;
    const text =
      kind === "u" ? String.fromCharCode(Number.parseInt(pending.slice(2), 16)) : (escapes.get(kind) ?? kind);
    pending = "";
    return text;
  };

  return (delta) => {
    let text = "";
    for (const letter of delta) {
      if (at === "key" && letter === ":") at = "value";
      else if (at === "value" && letter === '"') at = "text";
      else if (at === "text") {
        if (pending !== "" || letter === "\\") {
          pending += letter;
          text += takeEscape() ?? "";
        } else if (letter === '"') at = "over";
        else text += letter;
      }
    }
    return text;
  };
}
