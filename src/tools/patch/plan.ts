import { isUtf8 } from "node:buffer";
import { resolve } from "node:path";
import { CallError } from "../../index.ts";
import type { Files } from "../text-file.ts";
import { applyChunks } from "./apply.ts";
import type { Step, TextState } from "./commit.ts";
import type { Hunk, UpdateHunk } from "./parse.ts";

/** The files a patch will leave behind, worked out before anything is written. */
export interface Plan {
  add(hunk: Hunk): Promise<void>;
  /** The file shall have this content, whatever it has now. */
  put(path: string, text: string): Promise<void>;
  steps(): readonly Step[];
}

/** A file as the plan has it so far; several hunks may change one file, each sees what the ones before did. */
interface Planned {
  readonly path: string;
  readonly before: TextState | undefined;
  after: TextState | undefined;
}

export function createPlan(files: Files, cwd: string, codex: boolean): Plan {
  /** By where they really lie. */
  const planned = new Map<string, Planned>();

  const at = async (path: string, read: typeof readText): Promise<Planned> => {
    const absolute = resolve(cwd, path);
    const key = await files.resolve(absolute, "write");
    const known = planned.get(key);
    if (known) return known;
    const before = await readState(files, absolute, path, read);
    const fresh: Planned = { path: absolute, before, after: before };
    planned.set(key, fresh);
    return fresh;
  };

  /** Reading a file tells where it lies, too, so one that is there and may be written is looked at only once. */
  const updated = async (path: string): Promise<Planned> => {
    const absolute = resolve(cwd, path);
    if (planned.has(absolute)) return planned.get(absolute)!;
    const before = await readText(files, absolute).catch(refused);
    const key = before?.version?.path;
    if (key === undefined || planned.has(key)) return at(path, readText);
    const fresh: Planned = { path: absolute, before, after: before };
    planned.set(key, fresh);
    return fresh;
  };

  const update = async (hunk: UpdateHunk) => {
    const source = await updated(hunk.path);
    if (source.after === undefined) throw missing(hunk.path, "update");
    const text = applyChunks(source.after.text, hunk.chunks, { path: hunk.path, codex });
    const changed: TextState = { ...source.after, text };
    if (hunk.moveTo === undefined) {
      source.after = changed;
      return;
    }
    const target = await at(hunk.moveTo, readBytes);
    source.after = undefined;
    target.after = changed;
  };

  const put = async (path: string, text: string) => {
    const file = await at(path, readBytes);
    const mode = file.after?.mode === undefined ? {} : { mode: file.after.mode };
    file.after = { text, bom: false, encoding: "utf8", ...mode };
  };

  return {
    put,
    async add(hunk) {
      if (hunk.kind === "update") return update(hunk);
      if (hunk.kind === "add") return put(hunk.path, hunk.lines.map((line) => `${line}\n`).join(""));
      const file = await at(hunk.path, readBytes);
      if (file.after === undefined) throw missing(hunk.path, "delete");
      file.after = undefined;
    },
    steps: () => [...planned.values()].filter(({ before, after }) => before !== after),
  };
}

async function readState(
  files: Files,
  absolute: string,
  path: string,
  read: typeof readText,
): Promise<TextState | undefined> {
  const entry = await files.stat(absolute);
  if (entry === undefined) return undefined;
  if (entry.type === "directory") throw new CallError("failed", `${path} is a folder; a patch changes files.`);
  // A link that leads nowhere: the file it would create is not there.
  if (entry.type === "link" && !(await leadsSomewhere(files, absolute))) return undefined;
  const mode = entry.type === "file" ? { mode: entry.mode } : {};
  return { ...(await read(files, absolute)), ...mode };
}

/** For a file the patch works on: it must still be this version when it is written. */
async function readText(files: Files, path: string): Promise<TextState> {
  return files.readText(path, { toWrite: true });
}

/** Whatever is the matter with a file is found out and told in `at`. */
function refused(error: unknown): undefined {
  if (!CallError.is(error)) throw error;
}

/** For a file that is written over or removed: only kept for taking that back, and not counted as seen by the model. */
async function readBytes(files: Files, path: string): Promise<TextState> {
  const bytes = Buffer.from(await files.read(path));
  const encoding = isUtf8(bytes) ? "utf8" : "latin1";
  return { text: bytes.toString(encoding), bom: false, encoding };
}

async function leadsSomewhere(files: Files, path: string): Promise<boolean> {
  return (await files.stat(await files.resolve(path, "write"))) !== undefined;
}

function missing(path: string, what: "update" | "delete"): CallError {
  return new CallError("failed", `The patch cannot ${what} ${path}: there is no such file.`, {
    hint: what === "update" ? "To create it, use '*** Add File: '." : "Leave it out of the patch.",
    data: { path },
  });
}
