/** What a held command did to the workspace, as a plain value. It is listed before any of it becomes permanent. */

/** One path that has changed. */
export interface Effect {
  /** Relative to the workspace; absolute in another writable folder. */
  readonly path: string;
  /** `mode`: only its mode, its times or its attributes changed. */
  readonly kind: "added" | "changed" | "removed" | "mode";
  readonly type: EffectType;
  /** What it was before, if a file replaced a folder or the reverse. */
  readonly typeBefore?: EffectType;
  /** The size of a file, in bytes. */
  readonly size?: number;
  readonly sizeBefore?: number;
  /** Octal, as `chmod` takes it. */
  readonly mode?: string;
  readonly modeBefore?: string;
  /** The target of a link. */
  readonly target?: string;
  readonly targetBefore?: string;
  /** How many other hard links keep the old content. */
  readonly otherNames?: number;
  /** Only its modification time differs. */
  readonly touched?: true;
  /** Its extended attributes differ. */
  readonly attributes?: true;
  /** The folder that was added, removed or replaced together with it. */
  readonly inside?: string;
  /** It appears or disappears with that folder, and cannot be kept without it. */
  readonly implied?: true;
  /** Somebody else changed it since the command began, so it never overwrites that change. */
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
  /** The same for people: deletions first, and whole folders as one line. */
  readonly lines: readonly EffectLine[];
  /** The diff of the files that changed, cut to what a person can read. */
  readonly diff?: string;
  /** What failed because it does not work while held. Run directly, it may succeed. */
  readonly direct?: string;
}

/**
 * One line of the list. The text contains names that anybody may have chosen, so whoever prints it
 * must escape them.
 */
export interface EffectLine {
  /** `!`: a warning. `net`: a request that was made, which cannot be held back. */
  readonly mark: "-" | "~" | "+" | "!" | "git" | "net";
  readonly text: string;
  /** What the line stands for, for choosing it: the path, and everything in it. */
  readonly paths: readonly string[];
}

/** What became of a held run. */
export interface Settled {
  readonly run: string;
  readonly kept: "all" | "part" | "none";
  /** Paths that were left alone because somebody else had changed them. */
  readonly conflicts: readonly string[];
  /** How many renames were made. */
  readonly steps: number;
  /** How many bytes are stored so that it can be undone. */
  readonly bytes: number;
  /** Older runs that can no longer be undone, because the store is limited. */
  readonly pruned?: readonly string[];
}
