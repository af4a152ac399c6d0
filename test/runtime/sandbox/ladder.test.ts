import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Backend } from "../../../src/runtime/sandbox/backend.ts";
import { findRung } from "../../../src/runtime/sandbox/ladder.ts";
import type { Rung } from "../../../src/runtime/sandbox/ladder.ts";
import { thisMachine } from "../../../src/runtime/sandbox/machine.ts";
import { freshFolder } from "./folder.ts";

function rung(id: string, works: boolean, programs: readonly string[] = []): Rung & { readonly probes: () => number } {
  let count = 0;
  const backend: Backend = {
    name: id,
    proxyBy: "socket",
    probe: async () => (count++, { ok: works, detail: "" }),
    confine: ({ argv, cwd, env }) => ({ argv, cwd, env, warm: false, sandbox: id, cleanup: async () => undefined }),
    explain: () => [],
  };
  return { id, backend, programs, probes: () => count };
}

test("the first rung that works is taken, and those below are not tried", async () => {
  const rungs = [rung("a", false), rung("b", true), rung("c", true)] as const;
  expect((await findRung(rungs, thisMachine({ stateDir: freshFolder() })))?.id).toBe("b");
  expect(rungs.map((one) => one.probes())).toEqual([2, 1, 0]);
});

test("the answer is remembered for the next process, until the machine or a program changes", async () => {
  const stateDir = freshFolder();
  const program = join(stateDir, "bwrap");
  writeFileSync(program, "one");
  const only = rung("a", true, [program]);
  const machine = thisMachine({ stateDir });
  await findRung([only], machine);
  await findRung([only], machine);
  expect(only.probes()).toBe(1);
  await findRung([only], { ...machine, boot: "another" });
  expect(only.probes()).toBe(2);
  writeFileSync(program, "another one");
  await findRung([only], { ...machine, boot: "another" });
  expect(only.probes()).toBe(3);
});

test("a lower rung is looked at again after an hour, the best one is not", async () => {
  const machine = thisMachine({ stateDir: freshFolder() });
  const [best, lower] = [rung("a", false), rung("b", true)];
  await findRung([best, lower], machine, () => 0);
  await findRung([best, lower], machine, () => 1000);
  expect(lower.probes()).toBe(1);
  await findRung([best, lower], machine, () => 3_700_000);
  expect(lower.probes()).toBe(2);
});

test("a failure is not remembered: what is missing may be installed meanwhile", async () => {
  const machine = thisMachine({ stateDir: freshFolder() });
  const failing = rung("a", false);
  expect(await findRung([failing], machine)).toBeUndefined();
  expect(await findRung([failing], machine)).toBeUndefined();
  expect(failing.probes()).toBe(4);
});

test("a spoilt or unwritable memory costs a probe, nothing else", async () => {
  const stateDir = freshFolder();
  const file = join(stateDir, "sandbox-probe.json");
  writeFileSync(file, "{not json");
  expect((await findRung([rung("a", true)], thisMachine({ stateDir })))?.id).toBe("a");
  const blocked = join(stateDir, "file");
  writeFileSync(blocked, "");
  chmodSync(blocked, 0o400);
  expect((await findRung([rung("a", true)], thisMachine({ stateDir: join(blocked, "below") })))?.id).toBe("a");
  expect(existsSync(file)).toBe(true);
});
