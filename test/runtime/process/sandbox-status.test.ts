/** Whether a sandboxed command began: what its sandbox printed is never taken for the command's own words. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { startConfined } from "../../../src/runtime/process/plain.ts";
import { readSandboxStatus } from "../../../src/runtime/process/sandbox-status.ts";
import { unconfined } from "./spawners.ts";

/** What a program says on the descriptor, what of its errors is handed on, and what is concluded. */
async function ended(status: string, errors: readonly string[], exitCode: number | null, statusFd: number | null = 3) {
  const child = spawn("sh", ["-c", 'printf %s "$1" >&3', "sh", status], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const handed: string[] = [];
  const launch = unconfined({ argv: ["bwrap"], cwd: "/", env: {}, ...(statusFd === null ? {} : { statusFd }) });
  const read = readSandboxStatus(child, launch, (bytes) => handed.push(String(bytes)));
  for (const text of errors) read.take(Buffer.from(text));
  if (statusFd === null) child.stdio[3]?.destroy();
  await once(child, "close");
  return { why: read.end(exitCode), handed: handed.join("") };
}

test("a command that began has its errors handed on, even if they look like the sandbox's", async () => {
  const began = await ended('{"exit-code": 1}', ["bwrap: ", "not mine"], 1);
  expect(began).toEqual({ why: undefined, handed: "bwrap: not mine" });
  expect(await ended("", ["bw"], 0)).toEqual({ why: undefined, handed: "bw" });
  expect(await ended("", ["x"], null)).toEqual({ why: undefined, handed: "x" });
});

test("one that never began says why, and nothing is handed on", async () => {
  const sandbox = await ended('{"child-pid": 5}', ["bwr", "ap: No permissions to create"], 1);
  expect(sandbox.handed).toBe("");
  expect(sandbox.why).toMatchObject({ code: "EIO" });
  const program = await ended("", ["bwrap: execvp ./x: Permission denied\n"], 1);
  expect(program.why).toMatchObject({
    code: "EACCES",
    message: "the program could not be executed: Permission denied",
  });
});

test("what cannot be the sandbox's words is handed on at once, and so is what is too long for them", async () => {
  const early = await ended("", ["hello ", "world"], 1);
  expect(early.handed).toBe("hello world");
  const long = `bwrap: ${"x".repeat(4_096)}`;
  expect((await ended("", [long], 1)).handed).toBe(long);
  expect((await ended("", ["bwrap: y"], 1, null)).handed).toBe("bwrap: y");
});

test("a command has no input unless one is asked for, and the descriptors it is given", async () => {
  const launch = unconfined({ argv: ["cat"], cwd: "/", env: { PATH: process.env["PATH"] ?? "" } });
  const closed = startConfined(launch);
  expect(closed.stdin).toBeNull();
  expect((await once(closed, "close"))[0]).toBe(0);
  const open = startConfined(launch, { input: true });
  open.stdin?.end("through");
  expect(String((await once(open.stdout!, "data"))[0])).toBe("through");
  const given = startConfined({
    ...launch,
    argv: ["sh", "-c", "cat <&5"],
    fds: [{ fd: 5, data: Buffer.from("five") }],
  });
  expect(String((await once(given.stdout!, "data"))[0])).toBe("five");
  expect(startConfined(launch, { stdio: "ignore" }).stdout).toBeNull();
});
