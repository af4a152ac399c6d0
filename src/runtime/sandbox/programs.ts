/**
 * The files of denied programs. If a rule denies a program whatever its arguments, its files are
 * hidden, so that a copy, a race or a program that reads files itself finds nothing. The launcher also
 * recognises existing copies by their first bytes.
 */
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { basename, delimiter, isAbsolute, join } from "node:path";
import type { Denial, DeniedProgram, Grant } from "../../spec/access.ts";
import type { StartedPrograms } from "../../spec/capability.ts";
import type { ProgramFile, StartRules } from "../process/child.ts";
import type { Ending } from "./backend.ts";
import { resolved } from "./existing.ts";
import { startFilter } from "./seccomp/filter.ts";
import type { StartQuestions } from "./seccomp/filter.ts";
import type { Architecture } from "./seccomp/syscalls.ts";

/** Folders of programs that are not on everybody's PATH, or that hold them a second time. */
const otherFolders = [
  "/usr/local/sbin",
  "/usr/local/bin",
  "/usr/sbin",
  "/usr/bin",
  "/sbin",
  "/bin",
  "/usr/games",
  "/usr/local/games",
  "/usr/lib/git-core",
  "/usr/libexec/git-core",
  "/usr/lib/klibc/bin",
  "/usr/lib/cargo/bin",
  "/usr/lib/cargo/bin/coreutils",
  "/snap/bin",
];

/** Many programs in one file, told apart by their first word. Hiding the file for one would hide all of them. */
const manyInOne = new Set(["busybox", "toybox", "coreutils", "rustup", "volta-shim", "mise", "asdf", "snap", "proto"]);
/** Each of these contains most of the usual tools and can run them without the kernel noticing. */
const toolboxes = ["busybox", "toybox", "coreutils"];

export interface DeniedFiles {
  /** The files to hide in the sandbox, with links followed. */
  readonly hidden: readonly string[];
  readonly known: readonly ProgramFile[];
}

export function findDenied(denied: readonly DeniedProgram[], path: string): DeniedFiles {
  const folders = [...new Set([...path.split(delimiter).filter(isAbsolute), ...otherFolders])];
  const filesOf = (name: string) =>
    isAbsolute(name) ? realFiles([name]) : realFiles(folders.map((folder) => join(folder, name)));
  const shell = resolved("/bin/sh");
  const isShared = (file: string) => manyInOne.has(basename(file));
  const whole = denied.filter(({ words }) => words.length === 0).flatMap(({ program }) => program);
  const boxes = whole.length === 0 ? [] : toolboxes.flatMap(filesOf).filter((file) => file !== shell);
  const hidden = whole.flatMap(filesOf).filter((file) => !isShared(file) || whole.includes(basename(file)));
  const names = [...new Set([...denied.flatMap(({ program }) => program), ...toolboxes])];
  const all = new Set([...hidden, ...boxes]);
  const known = names.flatMap((name) => filesOf(name).flatMap((file) => describe(name, file, all.has(file))));
  return { hidden: [...all], known };
}

function realFiles(paths: readonly string[]): readonly string[] {
  const found = paths.flatMap((path) => resolved(path) ?? []);
  return [...new Set(found)].filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}

/** As in native/starts.c. */
const headBytes = 4096;

function describe(name: string, path: string, isHidden: boolean): readonly ProgramFile[] {
  const head = readHead(path);
  if (head === undefined) return [];
  // A file that many programs share counts under its own name, not as a copy of one of them.
  const called = manyInOne.has(basename(path)) ? basename(path) : basename(name);
  return [{ name: called, path, isHidden, fingerprint: fingerprint(head) }];
}

function readHead(path: string): Buffer | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const head = Buffer.alloc(headBytes);
      return head.subarray(0, readSync(file, head, 0, headBytes, 0));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined; // we cannot read it, so no command of ours can copy it
  }
}

const fnvPrime = 0x100000001b3n;
const fnvStart = 0xcbf29ce484222325n;

function fingerprint(bytes: Buffer): bigint {
  let hash = fnvStart;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * fnvPrime);
  return hash;
}

export interface DeniedPrograms {
  /** Files to hide, and what the launcher checks for each start if it can. */
  readonly hidden: readonly string[];
  readonly starts?: StartRules;
  readonly questions?: StartQuestions;
}

export interface StartJudge {
  /** What a grant's deny rules mean for one command with this PATH. */
  programs(grant: Grant, path: string | undefined): DeniedPrograms;
}

const none: DeniedPrograms = { hidden: [] };

export function createStartJudge(launcher: string | undefined, architecture: Architecture): StartJudge {
  let works: boolean | undefined;
  let last: { readonly key: string; readonly at: number; readonly files: DeniedFiles } | undefined;

  /** Cached, because files change rarely and looking at them costs more than most commands. */
  function files(denied: readonly DeniedProgram[], path: string): DeniedFiles {
    const key = JSON.stringify([path, denied]);
    if (last?.key !== key || Date.now() - last.at > filesLastMs)
      last = { key, at: Date.now(), files: findDenied(denied, path) };
    return last.files;
  }

  return {
    programs({ denied = [] }, path = "") {
      if (denied.length === 0) return none;
      const { hidden, known } = files(denied, path);
      if (launcher === undefined || !(works ??= judgesStarts(launcher))) return { hidden };
      const questions = denied.some(({ words }) => words.length > 0) ? "words" : "program";
      const filter = startFilter(architecture, questions);
      return { hidden, questions, starts: { rules: denied, files: known, filter } };
    },
  };
}

const filesLastMs = 2000;

/** Whether program starts can be judged on this machine. Really tried, once. */
export function judgesStarts(launcher: string): boolean {
  try {
    execFileSync(launcher, ["judges"], { stdio: "ignore", timeout: 5000 });
    return true;
  } catch {
    return false; // an old kernel, or one that lets nobody read another process
  }
}

/**
 * What in the kernel limits a command's number of processes: in bubblewrap, and elsewhere. Undefined
 * if nothing does.
 */
export function howProcessesAreHeld(launcher: string): readonly [inBwrap: string, elsewhere: string] | undefined {
  try {
    const said = execFileSync(launcher, ["limits"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 5000,
    });
    const [inBwrap = "", elsewhere = ""] = said.trim().split(" ");
    return [inBwrap, elsewhere];
  } catch {
    return undefined; // an older launcher
  }
}

/** What the rules kept from starting, as the denial of the whole command. */
export function refusedStart({ programs }: Pick<Ending, "programs">): Denial | undefined {
  const refused = programs?.list.find(({ refusedBy }) => refusedBy !== undefined);
  if (refused?.refusedBy === undefined) return undefined;
  const target = refused.argv.join(" ").slice(0, 200);
  const reason = `'${target}' was not started: the rule '${refused.refusedBy}' denies it`;
  return { what: "command", target, reason, rule: refused.refusedBy };
}

const maxListed = 50;
const maxWordsLength = 300;

/** A build starts thousands of programs. The first ones tell what was run, and every refusal is listed. */
export function shortList({ list, unlisted }: StartedPrograms): StartedPrograms {
  const shown = list.filter(({ refusedBy }, at) => at < maxListed || refusedBy !== undefined);
  return {
    list: shown.map((one) => ({ ...one, argv: cutWords(one.argv) })),
    unlisted: unlisted + list.length - shown.length,
  };
}

function cutWords(argv: readonly string[]): readonly string[] {
  let room = maxWordsLength;
  return argv.flatMap((word) => {
    if (room <= 0) return [];
    const part = word.length > room ? `${word.slice(0, room)}…` : word;
    room -= part.length + 1;
    return [part];
  });
}
