/**
 * Ends everything that a command started, if no pid namespace and no launcher does so: its group, its
 * descendants, and processes that left both but still carry the mark in their environment.
 */
import { readdirSync, readFileSync } from "node:fs";
import { execFileSync } from "node:child_process";

/** The environment variable that marks a command's processes. */
export const treeMark = "CALLGATE_TREE";

export interface Tree {
  /** Leader of the command's process group. */
  readonly pid: number;
  readonly mark: string;
}

/** Kills until it finds nothing more. Returns how many processes were killed. */
export function killTree(tree: Tree): number {
  const killed = new Set<number>();
  // A tree that forks while it is being killed needs more rounds. One that still grows after these is a fork bomb.
  for (let round = 0; round < 10; round++) {
    send(-tree.pid, "SIGKILL");
    const found = findTree(tree).filter((pid) => send(pid, "SIGKILL"));
    if (found.length === 0) break;
    for (const pid of found) killed.add(pid);
  }
  return killed.size;
}

/**
 * Sends a signal that the command may handle. Bubblewrap would die of it instead of passing it on, so
 * the processes inside are signalled directly.
 */
export function signalTree(tree: Tree, signal: NodeJS.Signals): void {
  if (nameOf(tree.pid) !== "bwrap") return void send(-tree.pid, signal);
  for (const pid of findTree(tree)) if (nameOf(pid) !== "bwrap") send(pid, signal);
}

function nameOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return undefined; // gone, or no /proc here
  }
}

/** Every living process of the tree, without zombies. */
export function findTree(tree: Tree): readonly number[] {
  return process.platform === "linux" ? findByProc(tree) : findByPs(tree);
}

/** False if no process with that number could be reached. */
export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false; // gone already, or not ours to touch
  }
}

interface Entry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

function findByProc(tree: Tree): readonly number[] {
  const entries: Entry[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    // Every process is looked at, because process numbers wrap around and a child may have a lower number than its
    // parent.
    if (!Number.isInteger(pid)) continue;
    const entry = readEntry(pid);
    if (entry) entries.push(entry);
  }
  const inTree = descendants(tree, entries);
  const mark = Buffer.from(`${treeMark}=${tree.mark}\0`);
  for (const { pid } of entries) {
    if (!inTree.has(pid) && hasMark(pid, mark)) inTree.add(pid);
  }
  return [...inTree];
}

function readEntry(pid: number): Entry | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may contain anything, even parentheses, so only what comes after the last one counts.
    const [state, parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? undefined : { pid, parent: Number(parent), group: Number(group) };
  } catch {
    return undefined; // it ended while we looked
  }
}

const zero = Buffer.of(0);

function hasMark(pid: number, mark: Buffer): boolean {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`);
    const at = variables.indexOf(mark);
    // Not as the end of another variable's value.
    return at === 0 || (at > 0 && (variables[at - 1] === 0 || variables.includes(Buffer.concat([zero, mark]))));
  } catch {
    return false; // another user's, or gone
  }
}

function findByPs(tree: Tree): readonly number[] {
  const entries = execFileSync("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat="], { encoding: "latin1" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([pid, , , stat]) => pid !== undefined && stat !== undefined && !stat.startsWith("Z"))
    .map(([pid, parent, group]) => ({ pid: Number(pid), parent: Number(parent), group: Number(group) }));
  return [...descendants(tree, entries)];
}

function descendants(tree: Tree, entries: readonly Entry[]): Set<number> {
  const inTree = new Set<number>(
    entries.filter(({ pid, group }) => pid === tree.pid || group === tree.pid).map(({ pid }) => pid),
  );
  for (let before = -1; before !== inTree.size;) {
    before = inTree.size;
    for (const { pid, parent } of entries) if (inTree.has(parent)) inTree.add(pid);
  }
  return inTree;
}

/** True if one of the processes sits in `read` of its standard input or its terminal. */
export function isReadingInput(pids: readonly number[]): boolean {
  return pids.some((pid) => {
    try {
      // "<number> <first argument> …" of the system call the process sleeps in; read is 0 on x86_64, 63 on arm64.
      const [call, fd] = readFileSync(`/proc/${pid}/syscall`, "latin1").split(" ");
      return call === (process.arch === "arm64" ? "63" : "0") && Number(fd) === 0;
    } catch {
      return false; // not readable for us, so nobody can tell
    }
  });
}
