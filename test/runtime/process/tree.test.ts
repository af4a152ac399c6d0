/** Whoever a command started is found: by descent, by its group, and by the mark it carries. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { findTree, isReadingInput, killTree, send, signalTree, treeMark } from "../../../src/runtime/process/tree.ts";

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
