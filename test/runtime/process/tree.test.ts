/** Whoever a command started is found: by descent, by its group, and by the mark it carries. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { findTree, isReadingInput, killTree, send, signalTree, treeMark } from "../../../src/runtime/process/tree.ts";
import { programPath } from "../../needs.ts";
import { freshFolder } from "../sandbox/folder.ts";

const started: number[] = [];
afterEach(() => {
  for (const pid of started.splice(0)) send(-pid, "SIGKILL");
});

/** A command in a group of its own that prints the numbers of what it started, and stays. */
async function start(line: string, mark = "none") {
  const env = { PATH: process.env["PATH"] ?? "", [treeMark]: mark };
  const child = spawn("bash", ["-c", `${line}; sleep 60 & wait`], {
    detached: true,
    env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  started.push(child.pid!);
  const [text] = (await once(child.stdout, "data")) as [Buffer];
  const pids = (String(text).match(/\d+/g) ?? []).map(Number).filter((one) => one > 1);
  started.push(...pids);
  return { child, pid: child.pid!, pids };
}
/** Whether it has a session of its own by now: `setsid` takes a moment. */
const leads = (pid: number) =>
  readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.split(" ")[3] === String(pid);
const isRunning = (pid: number) => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
};

test.runIf(process.platform === "linux")(
  "a child that left the group and its environment is found by descent",
  async () => {
    const { pid, pids } = await start("env -i setsid sleep 60 & echo $!");
    expect(findTree({ pid, mark: "another" })).toEqual(expect.arrayContaining([pid, ...pids]));
  },
);

test.runIf(process.platform === "linux")(
  "one that left its parent too is found by its mark, and only by the right one",
  async () => {
    const { pid, pids } = await start("(setsid sleep 60 & echo $!)", "m1");
    expect(findTree({ pid, mark: "m1" })).toEqual(expect.arrayContaining(pids));
    expect(findTree({ pid, mark: "m" })).not.toEqual(expect.arrayContaining(pids));
  },
);

test.runIf(process.platform === "linux")("all of them are killed and counted, and nobody else", async () => {
  const other = await start("sleep 60 & echo $!", "other");
  const { child, pid, pids } = await start("setsid sleep 60 & echo $!", "m2");
  await expect.poll(() => pids.every(leads)).toBe(true);
  const gone = once(child, "exit");
  expect(killTree({ pid, mark: "m2" })).toBeGreaterThan(0);
  await gone;
  // Killed is not yet gone.
  await expect.poll(() => [pid, ...pids].filter(isRunning)).toEqual([]);
  expect([other.pid, ...other.pids].every(isRunning)).toBe(true);
  expect(findTree({ pid, mark: "m2" })).toEqual([]);
});

test.runIf(process.platform === "linux")("a signal that a command handles reaches its whole group", async () => {
  const { child, pid } = await start("trap 'echo caught; exit 7' TERM; echo ready");
  const exit = once(child, "exit");
  signalTree({ pid, mark: "none" }, "SIGTERM");
  expect(await exit).toEqual([7, null]);
});

test("a process that is gone cannot be reached", () => {
  expect(send(2 ** 22 + 1, 0)).toBe(false);
  expect(send(process.pid, 0)).toBe(true);
});

test.runIf(process.platform === "linux")("whether one waits for input is told of the one that does", async () => {
  const reader = spawn("cat", [], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  started.push(reader.pid!);
  await expect.poll(() => isReadingInput([reader.pid!])).toBe(true);
  const sleeper = spawn("sleep", ["60"], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  started.push(sleeper.pid!);
  expect(isReadingInput([sleeper.pid!])).toBe(false);
  expect(isReadingInput([sleeper.pid!, reader.pid!])).toBe(true);
  expect(isReadingInput([])).toBe(false);
});

describe.runIf(process.platform === "linux")("a tree that does not want to be found", () => {
  test("is found whatever its programs are called", async () => {
    const folder = freshFolder();
    const odd = join(folder, "a) S 1 (b");
    copyFileSync(programPath("sleep")!, odd);
    const { pid, pids } = await start(`'${odd}' 60 & echo $!`);
    await expect.poll(() => readFileSync(`/proc/${pids[0]}/comm`, "utf8")).toBe("a) S 1 (b\n");
    expect(findTree({ pid, mark: "another" })).toEqual(expect.arrayContaining(pids));
  });

  test("is killed as a whole when it is wide, deep and scattered over sessions", async () => {
    const deep = "bash -c 'bash -c \"sleep 60 & echo \\$! ; wait\" & echo $!; wait' &";
    const wide = "for n in $(seq 20); do setsid sleep 60 & echo $!; done";
    const { child, pid, pids } = await start(`${deep} ${wide}; (setsid sleep 60 & echo $!) ; sleep 0.3`, "m3");
    const all = () => findTree({ pid, mark: "m3" });
    await expect.poll(() => all().length).toBeGreaterThanOrEqual(24);
    const members = all();
    const gone = once(child, "exit");
    killTree({ pid, mark: "m3" });
    await gone;
    await expect.poll(() => [...members, ...pids].filter(isRunning)).toEqual([]);
  });

  test("is killed although it makes new processes all the time", async () => {
    // Each child starts the next one and ends: whoever is listed is gone when it is killed.
    const line = "chain() { (sleep 0.01; chain) & }; for n in 1 2 3 4 5; do chain; done; echo up";
    const { pid } = await start(line, "m4");
    await expect
      .poll(() => {
        killTree({ pid, mark: "m4" });
        return findTree({ pid, mark: "m4" });
      })
      .toEqual([]);
  });

  test("loses nobody to a zombie: what has ended is neither found nor counted", async () => {
    // A sleep never waits for a child that it was given.
    const child = spawn("sh", ["-c", "true & echo $!; exec sleep 60"], {
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
    started.push(child.pid!);
    const [text] = (await once(child.stdout, "data")) as [Buffer];
    const zombie = Number(String(text));
    await expect.poll(() => isRunning(zombie)).toBe(false);
    expect(findTree({ pid: child.pid!, mark: "none" })).toEqual([child.pid]);
  });

  test("that is not there is nothing to kill", () => {
    expect(killTree({ pid: 2 ** 22 + 1, mark: "nobody" })).toBe(0);
    expect(findTree({ pid: 2 ** 22 + 1, mark: "nobody" })).toEqual([]);
  });

  test("takes nobody along whose mark only begins alike, or stands in another variable", async () => {
    const other = spawn("sleep", ["60"], {
      detached: true,
      stdio: "ignore",
      env: { PATH: process.env["PATH"], [treeMark]: "m55", OTHER: `${treeMark}=m5` },
    });
    started.push(other.pid!);
    await expect.poll(() => readFileSync(`/proc/${other.pid}/comm`, "utf8")).toBe("sleep\n");
    expect(findTree({ pid: 2 ** 22 + 1, mark: "m5" })).toEqual([]);
    expect(findTree({ pid: 2 ** 22 + 1, mark: "m55" })).toEqual([other.pid]);
  });
});

test.runIf(process.platform === "linux" && programPath("ps") !== undefined)(
  "on a system without /proc the group and its descendants are found by ps",
  async () => {
    const { pid, pids } = await start("sleep 60 & echo $!; setsid sleep 60 & echo $!");
    const { platform } = process;
    Object.defineProperty(process, "platform", { value: "darwin" });
    onTestFinished(() => void Object.defineProperty(process, "platform", { value: platform }));
    expect(findTree({ pid, mark: "none" })).toEqual(expect.arrayContaining([pid, ...pids]));
    expect(findTree({ pid, mark: "none" })).not.toContain(process.pid);
    expect(findTree({ pid: 2 ** 22 + 1, mark: "none" })).toEqual([]);
  },
);

test.runIf(process.platform === "linux")(
  "a signal reaches what runs inside bubblewrap, and not bubblewrap",
  async () => {
    // A program of that name stands for it: the processes below it are signalled, and it stays.
    const folder = freshFolder();
    copyFileSync(programPath("bash")!, join(folder, "bwrap"));
    const inner = "trap 'echo inside; exit 0' TERM; echo $$; while :; do sleep 0.02; done";
    const child = spawn(join(folder, "bwrap"), ["-c", `bash -c "$1"; echo left; sleep 60`, "bwrap", inner], {
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
    started.push(child.pid!);
    let said = "";
    child.stdout.on("data", (text: Buffer) => (said += String(text)));
    await expect.poll(() => /\d+\n/.test(said)).toBe(true);
    signalTree({ pid: child.pid!, mark: "none" }, "SIGTERM");
    await expect.poll(() => said).toContain("inside\nleft\n");
    expect(isRunning(child.pid!)).toBe(true);
  },
);
