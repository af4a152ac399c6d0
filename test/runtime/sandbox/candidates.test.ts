import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Backend } from "../../../src/runtime/sandbox/backend.ts";
import { findCandidate } from "../../../src/runtime/sandbox/candidates.ts";
import type { Candidate } from "../../../src/runtime/sandbox/candidates.ts";
import { thisMachine } from "../../../src/runtime/sandbox/machine.ts";
import { freshFolder } from "./folder.ts";

function candidate(
  id: string,
  works: boolean,
  programs: readonly string[] = [],
): Candidate & { readonly probes: () => number } {
  let count = 0;
  const backend: Backend = {
    name: id,
    proxyBy: "socket",
    probe: async () => (count++, { ok: works, detail: "" }),
    confine: (launch) => ({ ...launch, sandbox: id, cleanup: async () => undefined }),
    explain: () => [],
  };
  return { id, backend, programs, probes: () => count };
}

test("the first candidate that works is taken, and those below are not tried", async () => {
  const candidates = [candidate("a", false), candidate("b", true), candidate("c", true)] as const;
  expect((await findCandidate(candidates, thisMachine({ stateDir: freshFolder() })))?.id).toBe("b");
  expect(candidates.map((one) => one.probes())).toEqual([2, 1, 0]);
});

test("the answer is remembered for the next process, until the machine or a program changes", async () => {
  const stateDir = freshFolder();
  const program = join(stateDir, "bwrap");
  writeFileSync(program, "one");
  const only = candidate("a", true, [program]);
  const machine = thisMachine({ stateDir });
  await findCandidate([only], machine);
  await findCandidate([only], machine);
  expect(only.probes()).toBe(1);
  await findCandidate([only], { ...machine, boot: "another" });
  expect(only.probes()).toBe(2);
  writeFileSync(program, "another one");
  await findCandidate([only], { ...machine, boot: "another" });
  expect(only.probes()).toBe(3);
});

test("a later candidate is looked at again after an hour, the best one is not", async () => {
  const machine = thisMachine({ stateDir: freshFolder() });
  const [best, lower] = [candidate("a", false), candidate("b", true)];
  await findCandidate([best, lower], machine, () => 0);
  await findCandidate([best, lower], machine, () => 1000);
  expect(lower.probes()).toBe(1);
  await findCandidate([best, lower], machine, () => 3_700_000);
  expect(lower.probes()).toBe(2);
});

test("a failure is not remembered: what is missing may be installed meanwhile", async () => {
  const machine = thisMachine({ stateDir: freshFolder() });
  const failing = candidate("a", false);
  expect(await findCandidate([failing], machine)).toBeUndefined();
  expect(await findCandidate([failing], machine)).toBeUndefined();
  expect(failing.probes()).toBe(4);
});

test("a spoilt or unwritable memory costs a probe, nothing else", async () => {
  const stateDir = freshFolder();
  const file = join(stateDir, "sandbox-probe.json");
  writeFileSync(file, "{not json");
  expect((await findCandidate([candidate("a", true)], thisMachine({ stateDir })))?.id).toBe("a");
  const blocked = join(stateDir, "file");
  writeFileSync(blocked, "");
  chmodSync(blocked, 0o400);
  expect((await findCandidate([candidate("a", true)], thisMachine({ stateDir: join(blocked, "below") })))?.id).toBe(
    "a",
  );
  expect(existsSync(file)).toBe(true);
});
