/** Writes the planned files, all of them or none. */
import { dirname } from "node:path";
import { CallError } from "../../index.ts";
import { encodeText, type Files, type TextFile } from "../text-file.ts";

/** A text file's content, and what is needed to write it as it was. */
export interface TextState extends Pick<TextFile, "text" | "bom" | "encoding"> {
  readonly version?: TextFile["version"];
  readonly mode?: number;
}

/** One file, from its present state to the planned one. Undefined means that it does not exist. */
export interface Step {
  readonly path: string;
  readonly before: TextState | undefined;
  readonly after: TextState | undefined;
}

/** Writes every step. If one fails, it undoes those that were written, and throws. */
export async function commit(steps: readonly Step[], files: Files): Promise<void> {
  const undo: { readonly path: string; readonly back: () => Promise<void> }[] = [];
  // Encoding may fail, so it is done before anything is written. Removals come last, because they are the easiest to
  // postpone.
  const written: { readonly step: Step; readonly data: string | Uint8Array }[] = [];
  const removed: Step[] = [];
  for (const step of steps) {
    if (step.after === undefined) removed.push(step);
    else written.push({ step, data: encodeText(step.after.text, step.after, step.path) });
  }
  try {
    for (const { step, data } of written) undo.push({ path: step.path, back: await writeStep(step, data, files) });
    for (const step of removed) undo.push({ path: step.path, back: await removeStep(step, files) });
  } catch (error) {
    // If one file cannot be restored, the others still are, and the first error is still the one reported.
    const left: string[] = [];
    for (const { path, back } of undo.toReversed()) await back().catch(() => left.push(path));
    throw left.length === 0 ? error : notTakenBack(error, left);
  }
}

function notTakenBack(error: unknown, left: readonly string[]): CallError {
  const words = error instanceof Error ? error.message : String(error);
  return new CallError(CallError.is(error) ? error.code : "failed", words, {
    cause: error,
    hint: `Changed, and could not be put back: ${left.join(", ")}. Read them before you go on.`,
  });
}

async function writeStep(step: Step, data: string | Uint8Array, files: Files): Promise<() => Promise<void>> {
  const { path, before, after } = step;
  const made = before === undefined ? await missingFolders(path, files) : [];
  await files.write(path, data, {
    parents: before === undefined,
    ...(before?.version === undefined ? { exclusive: before === undefined } : { ifUnchanged: before.version }),
    ...(after?.mode === undefined ? {} : { mode: after.mode }),
  });
  return async () => {
    if (before !== undefined) return restore(path, before, files);
    await files.remove(path);
    for (const folder of made) await files.remove(folder);
  };
}

async function removeStep({ path, before }: Step, files: Files): Promise<() => Promise<void>> {
  await files.remove(path);
  return async () => (before === undefined ? undefined : restore(path, before, files));
}

async function restore(path: string, before: TextState, files: Files): Promise<void> {
  const mode = before.mode === undefined ? {} : { mode: before.mode };
  await files.write(path, encodeText(before.text, before, path), { evenIfChanged: true, ...mode });
}

/** The folders that writing `path` will create, innermost first. */
async function missingFolders(path: string, files: Files): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let folder = dirname(path); (await files.stat(folder)) === undefined; folder = dirname(folder))
    missing.push(folder);
  return missing;
}
