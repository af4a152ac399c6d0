/**
 * Whether it was the sandbox that stopped a command. This is never judged by words in an output. The
 * signal with which the kernel ends a forbidden call is proof. Otherwise only this is known: the
 * command failed, and it names something that the grant does not hold; each such thing is reported as
 * `inferred`. A command that succeeded was not stopped.
 */
import { accessSync, constants, existsSync } from "node:fs";
import { basename, dirname, isAbsolute, resolve } from "node:path";
import { constants as system, homedir } from "node:os";
import { defined } from "../../base/json.ts";
import type { Denial, Grant } from "../../spec/access.ts";
import type { LimitName, Limits } from "../../spec/capability.ts";
import type { Ending } from "./backend.ts";
import { contains } from "./plan.ts";

export interface DeniedCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly grant: Grant;
  /** The writable roots, and the places that the sandbox itself made writable. */
  readonly writable: readonly string[];
}

/** Joins them into one: the first denial, which decides what is asked, with the others attached. */
export function joinDenials(all: readonly (Denial | undefined)[]): Denial | undefined {
  const [first, ...more] = all.filter((denial) => denial !== undefined);
  return first === undefined || more.length === 0 ? first : { ...first, more };
}

export function explainEnding(command: DeniedCommand, { exitCode, signal }: Ending): Denial | undefined {
  if (exitCode === 0) return undefined;
  if (signal === "SIGSYS" || exitCode === 128 + 31)
    return { what: "command", reason: "the command made a system call the sandbox forbids" };
  if (exitCode === null) return undefined;
  const words = simpleCommands(command.argv);
  const all = [deniedRead(words, command), deniedNetwork(words, command.grant), deniedWrite(words, command)];
  return joinDenials(all.flat().map((denial) => ({ ...denial, inferred: true })));
}

const exceeded: Readonly<Record<LimitName, string>> = {
  processes: "more processes and threads at once",
  memoryBytes: "more bytes of memory",
  tempBytes: "more bytes in its temp folder",
};

/** The denial for a command that a limit ended. A person's yes cannot lift a limit. */
export function limitDenial({ limit, signal, exitCode }: Ending, limits: Limits = {}): Denial | undefined {
  if (limit !== undefined)
    return {
      what: "command",
      reason: `the command was ended: it used ${exceeded[limit]} than its limit of ${limits[limit]} (command_limits)`,
      rule: `limit ${limit}`,
    };
  if (signal !== "SIGXFSZ" && exitCode !== 128 + system.signals.SIGXFSZ) return undefined;
  const reason = `the command was ended: a file grew over the limit of ${limits.fileBytes} bytes (command_limits)`;
  return { what: "command", reason, rule: "limit fileBytes" };
}

/** A hidden path that exists was named, by whatever program. */
function deniedRead(commands: readonly SimpleCommand[], { cwd, grant }: DeniedCommand): readonly Denial[] {
  if (grant.mask.length === 0) return [];
  const named = commands.flatMap(({ words }) => words.slice(1)).filter((word) => !word.startsWith("-"));
  const isHidden = (path: string) => grant.mask.some((mask) => contains(mask, path)) && existsSync(path);
  const targets = new Set(named.map((word) => absolute(word, cwd)).filter(isHidden));
  return [...targets].map((target) => ({ what: "read", target, reason: `${target} is hidden from commands` }));
}

const makers = new Set(["touch", "mkdir", "tee", "truncate", "mkfifo", "mktemp", "patch"]);
const changers = new Set(["rm", "rmdir", "unlink", "chmod", "chown", "chgrp", "shred"]);
const copiers = new Set(["cp", "ln", "install", "rsync"]);

/** What a program would have changed. For programs not listed here, a failure is not blamed on the sandbox. */
function changedBy([program = "", ...operands]: readonly string[], cwd: string): readonly string[] {
  const name = basename(program);
  const paths = operands.filter((word) => !word.startsWith("-"));
  const existing = paths.filter((word) => existsSync(absolute(word, cwd)));
  if (makers.has(name)) return paths;
  if (changers.has(name)) return existing;
  // If the source does not exist, it failed for that reason.
  const isSource = paths.slice(0, -1).every((word) => existsSync(absolute(word, cwd)));
  if (copiers.has(name)) return isSource ? paths.slice(-1) : [];
  if (name === "mv") return isSource ? [...paths.slice(-1), ...existing] : [];
  if (name === "dd") return operands.filter((word) => word.startsWith("of=")).map((word) => word.slice(3));
  return name === "git" && gitWriters.has(operands[0] ?? "") && !gitLooks.test(operands.join(" ")) ? [".git"] : [];
}

/** Subcommands that only read, although others of the same name write. */
const gitLooks =
  /^(?:config (?:.*-l\b|.*--(?:get|list)|get\b|list\b|\S+$)|(?:branch|tag)(?: -\S*[lavr]\S*| --(?:list|contains|merged|no-merged|points-at|show-current|sort)\S*)*$|(?:stash|worktree) (?:list|show)\b)/;

function deniedWrite(commands: readonly SimpleCommand[], { cwd, grant, writable }: DeniedCommand): readonly Denial[] {
  const wanted = commands.flatMap(({ words, redirects }) => [...redirects, ...changedBy(words, cwd)]);
  const paths = wanted.map((word) => absolute(word, cwd)).filter((path) => isWithheld(path, { grant, writable }));
  return [...new Set(paths)].map((target) => ({
    what: "write",
    target,
    reason: `${target} may not be changed under ${grant.policy}`,
  }));
}

const gitWriters = new Set(
  "add am branch cherry-pick clean clone commit config fetch gc init merge mv pull push rebase reset restore revert rm stash switch checkout tag worktree".split(
    " ",
  ),
);

/** Outside the sandbox this user could change it; inside, it is in no writable root, or has a protected name. */
function isWithheld(path: string, { grant, writable }: Pick<DeniedCommand, "grant" | "writable">): boolean {
  if (path.startsWith("/dev/") || path.startsWith("/proc/")) return false;
  // The innermost place counts: a workspace may lie in the temp folder.
  const [root] = writable.filter((place) => contains(place, path)).toSorted((a, b) => b.length - a.length);
  const isProtected =
    root !== undefined && grant.protect.some((name) => contains(isAbsolute(name) ? name : resolve(root, name), path));
  if (root !== undefined && !isProtected) return false;
  return canWrite(existsSync(path) ? path : dirname(path));
}

function canWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const networkPrograms = new Set("curl wget ssh scp sftp ftp nc ncat telnet ping dig nslookup host aria2c".split(" "));
const fetchingVerbs: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["git", new Set(["clone", "fetch", "pull", "push", "ls-remote"])],
  ["npm", new Set(["install", "i", "ci", "add", "update", "publish", "view"])],
  ["pnpm", new Set(["install", "i", "add", "update"])],
  ["yarn", new Set(["install", "add", "upgrade"])],
  ["pip", new Set(["install", "download"])],
  ["pip3", new Set(["install", "download"])],
  ["cargo", new Set(["install", "fetch", "update", "add"])],
  ["go", new Set(["get", "install"])],
  ["apt-get", new Set(["install", "update", "upgrade"])],
  ["apt", new Set(["install", "update", "upgrade"])],
]);

/** For a network that is off. With a list of hosts, the proxy knows better. */
function deniedNetwork(commands: readonly SimpleCommand[], grant: Grant): readonly Denial[] {
  if (grant.network !== "off") return [];
  return commands.flatMap(({ words: [program = "", ...operands] }): readonly Denial[] => {
    const name = basename(program);
    const host = operands.map(hostOf).find((found) => found !== undefined);
    const fetches = fetchingVerbs.get(name)?.has(operands.find((word) => !word.startsWith("-")) ?? "") === true;
    if (isLoopback(host) || !(networkPrograms.has(name) || fetches)) return [];
    return [{ what: "network", ...defined({ target: host }), reason: `${name} needs the network, which is off` }];
  });
}

function hostOf(word: string): string | undefined {
  const url = /^[a-z][a-z0-9+.-]*:\/\/(?:[^@/]*@)?(\[[^\]]+\]|[^/:]+)/i.exec(word)?.[1];
  return url ?? /^(?:[\w.-]+@)([\w.-]+)(?::|$)/.exec(word)?.[1];
}

function isLoopback(host: string | undefined): boolean {
  return host !== undefined && (host === "localhost" || host === "[::1]" || host.startsWith("127."));
}

interface SimpleCommand {
  readonly words: readonly string[];
  readonly redirects: readonly string[];
}

const shells = new Set(["sh", "bash", "zsh", "dash", "ksh"]);

/**
 * The commands of an argv, including those of a `sh -c` line. A rough reading is enough here: a wrong
 * guess asks a person one question too many or too few, and grants nothing.
 */
function simpleCommands(argv: readonly string[]): readonly SimpleCommand[] {
  const line = shells.has(basename(argv[0] ?? ""))
    ? argv[argv.findIndex((word) => /^-\w*c\w*$/.test(word)) + 1]
    : undefined;
  if (line === undefined || line === argv[0]) return [{ words: argv, redirects: [] }];
  return line.split(/&&|\|\||[;|\n&](?![>&])/).map((part) => {
    const redirects: string[] = [];
    const rest = part.replace(
      /\d?>{1,2}\|?\s*("[^"]*"|'[^']*'|[^\s;&|<>()]+)/g,
      (_match, target: string) => (redirects.push(unquote(target)), " "),
    );
    const words = (rest.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? []).map(unquote);
    return { words: words.slice(words.findIndex((word) => !/^\w+=/.test(word))), redirects };
  });
}

function unquote(word: string): string {
  return /^(["']).*\1$/s.test(word) ? word.slice(1, -1) : word;
}

function absolute(word: string, cwd: string): string {
  return resolve(cwd, word.startsWith("~/") ? homedir() + word.slice(1) : word);
}
