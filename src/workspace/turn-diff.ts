/** The diff of a turn: the folder before it and after it, compared, with renames found as git finds them. */
import { createHash } from "node:crypto";
import { defined } from "../base/json.ts";
import { kindOf, runLater, type RunLater } from "../gate/run-later.ts";
import type { FileChange } from "../runtime/files.ts";
import { changeWords, unifiedDiff } from "../runtime/diff-text.ts";
import { takeSnapshot, type Snapshot, type SnapshotFile, type SnapshotLimits } from "./snapshot.ts";

/** What one turn changed on disk, whoever changed it: a patch, an edit tool or a command. */
export interface TurnDiff {
  /** One unified diff over all files, in git's form. */
  readonly diff: string;
  readonly files: readonly ChangedFile[];
  readonly notes: readonly string[];
}

/** A file that a turn changed. */
export interface ChangedFile {
  readonly path: string;
  readonly action: "add" | "update" | "delete" | "rename";
  readonly from?: string;
}

export interface TurnDiffer {
  /** Called before the turn's first change: remembers the workspace. Cheap if little changed since the last time. */
  begin(): void;
  /** A file that our own tools changed, with its earlier content. It is exact even where the snapshot was too small. */
  note(change: FileChange): void;
  end(): TurnDiff;
}

export interface TurnDiffOptions {
  readonly workspace: string;
  readonly limits?: Partial<SnapshotLimits>;
  /** The diff is cut at this size; the list of files is not. */
  readonly maxDiffBytes?: number;
  /** Files that run later, marked in the notes. Left out: our own table. */
  readonly runLater?: RunLater;
}

export function createTurnDiffer(options: TurnDiffOptions): TurnDiffer {
  const { workspace, limits = {}, maxDiffBytes = 512 * 1024, runLater: runs = runLater } = options;
  let before: Snapshot | undefined;
  let noted = new Map<string, Uint8Array | undefined>();

  return {
    begin() {
      // Contents of files that have the same stamp as before need not be read again.
      before = takeSnapshot(workspace, limits, before);
      noted = new Map();
    },
    note({ path, before: content }) {
      if (!noted.has(path)) noted.set(path, content);
    },
    end() {
      if (before === undefined) return { diff: "", files: [], notes: [] };
      const after = takeSnapshot(workspace, limits, before);
      const changes = pairRenames(compare(before, after, noted));
      before = after;
      noted = new Map();
      return toDiff(changes, maxDiffBytes, after.notes, runs);
    },
  };
}

/** Both sides of one file: undefined if it does not exist, null if its content was not kept. */
export interface Change {
  readonly path: string;
  readonly from?: string;
  readonly before: Uint8Array | null | undefined;
  readonly after: Uint8Array | null | undefined;
}

export function compare(
  before: Snapshot,
  after: Snapshot,
  noted: ReadonlyMap<string, Uint8Array | undefined> = new Map(),
): readonly Change[] {
  const paths = [...new Set([...before.files.keys(), ...after.files.keys()])].toSorted();
  return paths.flatMap((path) => {
    const old = before.files.get(path);
    const now = after.files.get(path);
    if (old && now && old.stamp === now.stamp) return [];
    const exact = noted.get(after.absolute(path));
    const was = old && (exact ?? content(old));
    const is = now && content(now);
    return was && is && Buffer.from(was).equals(is) ? [] : [{ path, before: was, after: is }];
  });
}

function content(file: SnapshotFile): Uint8Array | null {
  return file.content ?? null;
}

/** A removed file and a new one with the same content are one renamed file. */
function pairRenames(changes: readonly Change[]): readonly Change[] {
  const gone = new Map<string, Change>();
  for (const change of changes) {
    if (change.after === undefined && change.before) gone.set(hash(change.before), change);
  }
  const taken = new Set<Change>();
  const paired = changes.map((change) => {
    if (change.before !== undefined || !change.after || change.after.length === 0) return change;
    const source = gone.get(hash(change.after)) ?? similar(change, gone.values(), taken);
    if (!source || taken.has(source)) return change;
    taken.add(source);
    return { ...change, from: source.path, before: source.before };
  });
  return paired.filter((change) => !taken.has(change));
}

function hash(bytes: Uint8Array): string {
  return createHash("sha1").update(bytes).digest("base64");
}

/** As in git: more than half of the lines are equal. Only for texts that are small enough to compare. */
function similar(added: Change, gone: Iterable<Change>, taken: ReadonlySet<Change>): Change | undefined {
  const own = lineSet(added.after);
  let best: { readonly change: Change; readonly share: number } | undefined;
  for (const change of gone) {
    if (taken.has(change)) continue;
    const other = lineSet(change.before);
    const common = [...other].filter((line) => own.has(line)).length;
    const share = common / Math.max(1, own.size, other.size);
    if (share > 0.5 && share > (best?.share ?? 0)) best = { change, share };
  }
  return best?.change;
}

function lineSet(bytes: Uint8Array | null | undefined): ReadonlySet<string> {
  return new Set(bytes && bytes.length < 200_000 ? Buffer.from(bytes).toString("latin1").split("\n") : []);
}

function toDiff(changes: readonly Change[], maxBytes: number, notes: readonly string[], runs: RunLater): TurnDiff {
  const parts: string[] = [];
  let size = 0;
  let left = 0;
  for (const change of changes) {
    const text = size < maxBytes ? unifiedDiff(change) : "";
    if (size + text.length > maxBytes || text === "") left++;
    else parts.push(text);
    size += text.length;
  }
  const files = changes.map((change) => ({
    path: change.path,
    action: changeWords(change),
    ...defined({ from: change.from }),
  }));
  const later = files.filter(({ path, action }) => action !== "delete" && kindOf(path, runs) !== undefined);
  const run =
    later.length === 0 ? [] : [`runs later, when somebody starts it: ${later.map(({ path }) => path).join(", ")}`];
  const cut = left > 0 ? [`the diff of ${left} files is left out: it would be too long`] : [];
  return { diff: parts.join(""), files, notes: [...notes, ...run, ...cut] };
}
