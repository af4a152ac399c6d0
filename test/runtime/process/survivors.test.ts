import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Grant } from "../../../src/spec/access.ts";
import { createExec } from "../../../src/runtime/exec.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";
import { createSandbox } from "../../../src/runtime/sandbox/sandbox.ts";
import { confining, launchers } from "./spawners.ts";

const cwd = realpathSync(mkdtempSync(join(tmpdir(), "callgate-survivors-")));
const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: homedir() };
const open: Grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" };
const confined: Grant = {
  policy: "workspace-write",
  confined: true,
  write: [cwd],
  protect: [],
  mask: [],
  network: "off",
};
let next = 0;

/** The four ways a process leaves its command behind; each sleeps for a number nobody else sleeps for. */
function escapers(seconds: string): string {
  return [
    `sleep ${seconds} & `,
    `setsid sleep ${seconds} & `,
    `nohup sleep ${seconds} >/dev/null 2>&1 & disown; `,
    `(setsid bash -c 'sleep ${seconds} & exit' >/dev/null 2>&1 </dev/null &) ; `,
    "sleep 0.1; ",
  ].join("");
}

function alive(seconds: string): number {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "latin1") === `sleep\0${seconds}\0`;
    } catch {
      return false; // it ended while we looked
    }
  }).length;
}

async function aliveSoon(seconds: string, withinMs: number): Promise<number> {
  const until = Date.now() + withinMs;
  while (alive(seconds) > 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
  return alive(seconds);
}

const unique = () => `9${process.pid}${next++}`;
const places = [
  ...launchers.map((how) => ({ ...how, isThere: true, place: "bare", grant: open })),
  ...confining.map((how) => ({ ...how, place: "in a sandbox", grant: confined })),
];

describe.each(places)("through $name, $place, nothing survives a command", ({ launcher, grant, isThere }) => {
  const processes = createProcesses({ launcher });
  const sandbox = createSandbox();
  const exec = (signal = new AbortController().signal) => createExec({ processes, sandbox, grant, cwd, env, signal });
  afterAll(async () => {
    await processes.close();
    await sandbox.close();
  });

  test.skipIf(!isThere)("that ends by itself", async () => {
    const seconds = unique();
    await exec().run({ argv: ["bash", "-c", escapers(seconds)] });
    expect(await aliveSoon(seconds, 1000)).toBe(0);
  });

  test.skipIf(!isThere)("that runs out of time", async () => {
    const seconds = unique();
    await exec().run({ argv: ["bash", "-c", `${escapers(seconds)} sleep ${seconds}`], timeoutMs: 400 });
    expect(await aliveSoon(seconds, 1000)).toBe(0);
  });

  test.skipIf(!isThere)("that is stopped by its caller", async () => {
    const seconds = unique();
    const stop = new AbortController();
    const running = exec(stop.signal).run({ argv: ["bash", "-c", `${escapers(seconds)} sleep ${seconds}`] });
    setTimeout(() => stop.abort(), 400);
    await expect(running).rejects.toMatchObject({ code: "aborted" });
    expect(await aliveSoon(seconds, 1000)).toBe(0);
  });
});

describe.each(launchers.filter(({ launcher }) => launcher !== "off"))("with $name", ({ launcher }) => {
  const server = (): number[] =>
    readdirSync("/proc")
      .filter((pid) => /^\d+$/.test(pid))
      .filter((pid) => {
        try {
          const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
          return (
            stat.includes("(callgate)") && stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] === String(process.pid)
          );
        } catch {
          return false; // it ended while we looked
        }
      })
      .map(Number);

  test("a launcher that is killed ends its calls with an error, leaves nothing, and the next call works", async () => {
    const processes = createProcesses({ launcher });
    const seconds = unique();
    const exec = createExec({ processes, grant: open, cwd, env, signal: new AbortController().signal });
    const running = exec.run({ argv: ["bash", "-c", `${escapers(seconds)} sleep ${seconds}`] });
    while (alive(seconds) < 5) await new Promise((resolve) => setTimeout(resolve, 20));
    for (const pid of server()) process.kill(pid, "SIGKILL");
    await expect(running).rejects.toMatchObject({ code: "failed" });
    expect(await aliveSoon(seconds, 1000)).toBe(0);
    expect((await exec.run({ argv: ["echo", "again"] })).stdout.head).toBe("again\n");
    await processes.close();
    expect(server()).toEqual([]);
  });

  test("a keeper that its command kills does not save the command", async () => {
    const processes = createProcesses({ launcher });
    const seconds = unique();
    const exec = createExec({ processes, grant: open, cwd, env, signal: new AbortController().signal });
    const result = await exec.run({ argv: ["bash", "-c", `${escapers(seconds)} kill -9 $PPID; sleep ${seconds}`] });
    expect(result.signal).toBe("SIGKILL");
    expect(await aliveSoon(seconds, 1000)).toBe(0);
    await processes.close();
  });

  test("everything ends when Node itself is killed", async () => {
    const seconds = unique();
    const line = JSON.stringify(`${escapers(seconds)} sleep ${seconds}`);
    const script = join(cwd, "victim.test-run.mjs");
    // The protocol by hand: a bundle of ours would test the bundler as well.
    writeFileSync(
      script,
      `import { spawn } from "node:child_process";
       const field = (tag, bytes) => { const h = Buffer.alloc(5); h.write(tag); h.writeUInt32LE(bytes.length, 1); return Buffer.concat([h, bytes]); };
       const text = (tag, value) => field(tag, Buffer.from(value + "\\0"));
       const body = Buffer.concat([...["bash", "-c", ${line}].map((w) => text("a", w)), text("c", "/"), text("e", "PATH=/usr/bin:/bin")]);
       const head = Buffer.alloc(9); head.writeUInt32LE(5 + body.length); head.write("S", 4); head.writeUInt32LE(1, 5);
       const child = spawn(${JSON.stringify(launcher)}, ["serve"], { stdio: ["ignore", "ignore", "inherit", "pipe"], detached: true });
       child.stdio[3].write(Buffer.concat([head, body]));
       console.log("started");`,
    );
    const victim = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((resolve) => victim.stdout.once("data", resolve));
    while (alive(seconds) < 5) await new Promise((resolve) => setTimeout(resolve, 20));
    victim.kill("SIGKILL");
    expect(await aliveSoon(seconds, 5000)).toBe(0);
  });
});

afterAll(() => rmSync(cwd, { recursive: true, force: true }));
