/** What a held command did to the workspace, as a plain value: listed before any of it happens for good. */

/** One path that is not as it was. */
export interface Effect {
  /** Relative to the workspace; absolute in another writable folder. */
  readonly path: string;
  /** `mode`: only its mode, its times or its attributes changed. */
  readonly kind: "added" | "changed" | "removed" | "mode";
  readonly type: EffectType;
  /** What it was, where a file took a folder's place or the other way round. */
  readonly typeBefore?: EffectType;
  /** In bytes, of files. */
  readonly size?: number;
  readonly sizeBefore?: number;
  /** Octal, as `chmod` takes it. */
  readonly mode?: string;
  readonly modeBefore?: string;
  /** Of links. */
  readonly target?: string;
  readonly targetBefore?: string;
  /** Hard links to it that keep the old content. */
  readonly otherNames?: number;
  /** Only its time of change differs. */
  readonly touched?: true;
  /** Its extended attributes differ. */
  readonly attributes?: true;
  /** The folder that was added, removed or replaced together with it. */
  readonly inside?: string;
  /** Comes or goes with that folder and cannot be kept without it. */
  readonly implied?: true;
  /** Somebody else changed it since the command began: it is never kept over that. */
  readonly conflict?: true;
}

/** What kind of thing was changed. */
export type EffectType = "file" | "folder" | "link" | "pipe" | "socket" | "device";

/** What becomes of a held run: all of it, only these paths, or nothing. */
export type Choice = "all" | "none" | { readonly paths: readonly string[] };

/** What a held run did to the files. */
export interface Effects {
  /** The run's name, by which it can be undone. */
  readonly run: string;
  readonly list: readonly Effect[];
  /** The same for people: deletions first, whole folders as one line. */
  readonly lines: readonly EffectLine[];
  /** Of the files that changed, cut to what a person can read. */
  readonly diff?: string;
  /** It failed at something that does not work while held, and this is what: run directly, it may succeed. */
  readonly direct?: string;
}

/** One line of the list. The text holds names that anybody may have chosen: whoever prints it makes them visible. */
export interface EffectLine {
  /** `!`: a warning. `net`: a request that was made, which nothing holds back. */
  readonly mark: "-" | "~" | "+" | "!" | "git" | "net";
  readonly text: string;
  /** What the line stands for, to choose it by: the path, and everything in it. */
  readonly paths: readonly string[];
}

/** What came of it. */
export interface Settled {
  readonly run: string;
  readonly kept: "all" | "part" | "none";
  /** Paths that were left alone because somebody else had changed them. */
  readonly conflicts: readonly string[];
  /** Renames that were made. */
  readonly steps: number;
  /** What undo holds for it, in bytes. */
  readonly bytes: number;
  /** Older runs that can no longer be undone, because the store is bounded. */
  readonly pruned?: readonly string[];
}
