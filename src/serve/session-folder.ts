/**
 * The folder of a session, whichever process goes on with it. After each call that may have changed it, its state is
 * kept; whoever takes over makes it as it was after the last call that ended. What a call did that was cut off is gone
 * then, so for one that could change nothing else, "interrupted" comes to mean "did not happen".
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
  /** Left out: no other machine goes on with the session. */
  readonly packs?: PackStore;
  /** Tools whose handlers do nothing but what their grant lets them. */
  readonly confinedTools: ReadonlySet<string>;
}

/** A session's folder, as the last call that ended left it. */
export interface SessionFolder {
  /** What the session goes on from: the records, and what was done to the folder just now. */
  readonly records: OpenRequest["records"];
  /** Keeps the folder as it is now, and names that state. */
  keep(): Promise<string>;
  /** The same, and recorded: something other than a call has changed the folder. */
  note(): Promise<void>;
}

/** Makes the folder what the records say it was, and keeps what calls do to it from then on. */
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

/** Up to which record this machine has cleaned the folder of what cut-off calls did; another machine cleans its own. */
const markOf = (repository: string) => join(repository, "clean");

function readMark(repository: string): number {
  return existsSync(markOf(repository)) ? Number(readFileSync(markOf(repository), "utf8")) : 0;
}

function writeMark(repository: string, mark: number): void {
  writeFileSync(markOf(repository), String(mark));
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // No pack is kept elsewhere.
}

/** Calls that may have changed files, began and never ended, from record `mark` on; and those that were told of before. */
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
    // The record is our own: it has the call.
    if (record.type === "call.ended") open.delete((record["call"] as { readonly id: string }).id);
  }
  return { calls: [...open.values()].filter(({ record }) => record.n >= mark), told };
}

function isConfined(record: StoredRecord, folders: readonly string[]): boolean {
  const roots = record["write"] as readonly string[];
  return (
    record["confined"] === true &&
    record["network"] === "off" &&
    // What is in the folder for temporary files ends with the process.
    roots.every((root) => [...folders, tmpdir()].some((folder) => folder !== "" && isInside(root, folder)))
  );
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return !way.startsWith("..") && !isAbsolute(way);
}
