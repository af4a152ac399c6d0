import { expect, test } from "vitest";
import { exitCodeOf, layoutExec } from "../../src/result/cut.ts";
import { wholeOf } from "../../src/result/truncate.ts";
import type { CapturedOutput } from "../../src/spec/capability.ts";

const outcome = {
  stdout: "out\n",
  stderr: "err\n",
  output: "out\nerr\n",
  exitCode: 3,
  durationMs: 1_234,
  timedOut: false,
};
const whole = (output: string | CapturedOutput) => wholeOf(output) ?? "";

test("plain: the output, and the exit code when it is not zero", () => {
  expect(layoutExec(outcome, "plain", whole)).toBe("out\nerr\n[exit code 3]");
  expect(layoutExec({ ...outcome, exitCode: 0 }, "plain", whole)).toBe("out\nerr\n");
  expect(layoutExec({ ...outcome, exitCode: 0, output: "" }, "plain", whole)).toBe("[no output]");
});

test("plain: that an output is no text is said, and only then", () => {
  const captured = (binary: boolean): CapturedOutput => ({
    head: "out\n",
    tail: "",
    droppedBytes: 0,
    totalBytes: 4,
    lineBreaks: 1,
    binary,
  });
  const told = (binary: boolean) => layoutExec({ ...outcome, exitCode: 0, output: captured(binary) }, "plain", whole);
  expect([told(true), told(false)]).toEqual(["out\n[the output is not text]", "out\n"]);
});

test("plain: who waits or holds the output open is said, and whether anything can be typed", () => {
  const told = (more: object) => layoutExec({ ...outcome, exitCode: 0, output: "", ...more }, "plain", whole);
  expect(told({ heldOpen: true })).toBe("[a background process kept the output open; it was ended]");
  expect(told({ waitingForInput: true })).toBe("[the command was waiting for input; none can be given here]");
  expect(told({ waitingForInput: true, sessionId: 7 })).toBe(
    "[the process is waiting for input]\n[still running as session 7]",
  );
  expect(told({ exitCode: null })).toBe("[exit code unknown]");
});

test("plain: a command that ran out of time says so", () => {
  expect(layoutExec({ ...outcome, exitCode: 124, timedOut: true }, "plain", whole)).toContain(
    "[command timed out after 1234 milliseconds]",
  );
});

test("seed 000: stdout, stderr and exit_code, each under its name", () => {
  expect(layoutExec(outcome, "sections", whole)).toBe("stdout:\nout\n\nstderr:\nerr\n\nexit_code: 3");
});

test("codex: exit code, wall time, output", () => {
  expect(layoutExec(outcome, "codex", whole)).toBe("Exit code: 3\nWall time: 1.2 seconds\nOutput:\nout\nerr\n");
  expect(layoutExec({ ...outcome, sessionId: 7, chunkId: "a1" }, "codex", whole)).toContain(
    "Process running with session ID 7",
  );
});

test("codex's older shell: one JSON text", () => {
  expect(JSON.parse(layoutExec(outcome, "codex-json", whole))).toEqual({
    output: "out\nerr\n",
    metadata: { exit_code: 3, duration_seconds: 1.2 },
  });
});

test("a death by signal has the exit code a shell would give, and the time limit has 124", () => {
  const died = { ...outcome, exitCode: null };
  const codes = ["SIGINT", "SIGKILL", "SIGSYS", null].map((signal) => exitCodeOf({ ...died, signal }));
  expect(codes).toEqual([130, 137, 159, null]);
  expect(exitCodeOf({ ...died, signal: "SIGKILL", timedOut: true })).toBe(124);
});

test("nothing to remark leaves no notes; what there is stands in them, in order", () => {
  expect(layoutExec({ ...outcome, exitCode: 0, notes: [] }, "plain", whole)).toBe("out\nerr\n");
  expect(layoutExec({ ...outcome, exitCode: 0, notes: ["one", "two"] }, "codex", whole)).toMatch(/one\ntwo$/);
  expect(layoutExec({ ...outcome, exitCode: 0, heldOpen: true, notes: ["one"] }, "codex", whole)).toMatch(
    /kept the output open.*\none$/,
  );
});

test("codex, a process that may go on: how it ended, or under which number it runs", () => {
  const session = { ...outcome, chunkId: "abc123" };
  expect(layoutExec(session, "codex", whole)).toContain("Process exited with code 3");
  expect(layoutExec({ ...session, exitCode: 0 }, "codex", whole)).toContain("Process exited with code 0");
  expect(layoutExec({ ...session, exitCode: null, sessionId: 77 }, "codex", whole)).toContain(
    "Process running with session ID 77",
  );
});
