/**
 * The folder of a session, whichever process continues it. After each call that may have changed the folder,
 * its state is stored, and a process that takes over restores the state after the last call that ended. What
 * an interrupted call did is gone then. So for a call that could change nothing else, "interrupted" means
 * that it did not happen.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { tmpdir } from "node:os";
import type { StoredRecord } from "../store/journal.ts";
import type { PackStore } from "../store/packs.ts";
import { createFolderStates } from "../workspace/folder-states.ts";
import type { OpenRequest } from "./open-session.ts";

/** Options of `openSessionFolder`. */
export interface SessionFolderOptions extends Pick<OpenRequest, "records" | "journal"> {
  /** The session's id. */
  readonly session: string;
  /** The path of the folder, with every link followed. */
  readonly folder: string;
  /** Where its states are kept on this machine: a folder of their own. */
  readonly repository: string;
  /** Left out: the session is never continued on another machine. */
  readonly packs?: PackStore;
  /** Tools whose handlers do nothing beyond what their grant allows. */
  readonly confinedTools: ReadonlySet<string>;
}

/** A session's folder, as the last call that ended left it. */
export interface SessionFolder {
  /** The records that the session continues from, including what was just done to the folder. */
  readonly records: OpenRequest["records"];
  /** Stores the present state of the folder, and returns its name. */
  keep(): Promise<string>;
  /** The same for a change that no call made, which is also recorded. */
  note(): Promise<void>;
}

/** Restores the folder to what the records say, and stores what calls do to it from then on. */
export async function openSessionFolder(options: SessionFolderOptions): Promise<SessionFolder> {
  const { session, folder, repository, packs, records, journal, confinedTools } = options;
  const states = createFolderStates(folder, repository);
  const keep = () => states.keep(async (pack) => packs?.add(session, pack));
  const note = async () => {
    await journal.append({ type: "workspace.kept", workspace: await keep() });
  };
  const last = records.findLast((record) => typeof record["workspace"] === "string")?.["workspace"];
  if (typeof last !== "string") {
    await note();
    return { records, keep, note };
  }
  const cut = findCutOff(records, readMark(repository));
  if (cut.calls.length === 0 && (await states.last) === last) return { records, keep, note };
  await states.restore(last, () => packs?.read(session) ?? nothing());
  writeMark(repository, records.length);
  const undone = cut.calls
    .filter(({ record, cwd }) => confinedTools.has(String(record["tool"])) && isConfined(record, [folder, cwd]))
    .map(({ record }) => String(record["id"]))
    .filter((id) => !cut.told.has(id));
  const restored = { type: "workspace.restored", workspace: last, undone };
  await journal.append(restored);
  const at = { n: records.length, at: records.at(-1)?.at ?? 0 };
  return { records: [...records, { ...restored, ...at }], keep, note };
}

/**
 * The record up to which this machine has removed what interrupted calls did to the folder. Other machines
 * have their own.
 */
const markOf = (repository: string) => join(repository, "clean");

function readMark(repository: string): number {
  return existsSync(markOf(repository)) ? Number(readFileSync(markOf(repository), "utf8")) : 0;
}

function writeMark(repository: string, mark: number): void {
  writeFileSync(markOf(repository), String(mark));
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // No pack is stored elsewhere.
}

/**
 * Calls from record `mark` on that may have changed files, began and never ended; and the ids that were
 * reported before.
 */
function findCutOff(records: readonly StoredRecord[], mark: number) {
  /** Each with the folder that its process worked in, on its own machine. */
  const open = new Map<string, { readonly record: StoredRecord; readonly cwd: string }>();
  const told = new Set<string>();
  let cwd = "";
  for (const record of records) {
    if (record.type === "session.started") cwd = String(record["cwd"]);
    if (record.type === "workspace.restored") for (const id of open.keys()) told.add(id);
    if (record.type === "call.started" && Array.isArray(record["write"]))
      open.set(String(record["id"]), { record, cwd });
    // We wrote this record ourselves, so it has the call.
    if (record.type === "call.ended") open.delete((record["call"] as { readonly id: string }).id);
  }
  return { calls: [...open.values()].filter(({ record }) => record.n >= mark), told };
}

function isConfined(record: StoredRecord, folders: readonly string[]): boolean {
  const roots = record["write"] as readonly string[];
  return (
    record["confined"] === true &&
    record["network"] === "off" &&
    // What is in the temporary folder ends with the process.
    roots.every((root) => [...folders, tmpdir()].some((folder) => folder !== "" && isInside(root, folder)))
  );
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return !way.startsWith("..") && !isAbsolute(way);
}
