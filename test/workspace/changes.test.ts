/** What a session did to the files, as its turn hears of it: which commands can be taken back, whoever ran beside them. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Permitted } from "../../src/spec/call.ts";
import { createChangeTracker } from "../../src/workspace/changes.ts";
import { createUndoLog, filesToUndo, reverseTurn } from "../../src/workspace/undo.ts";
import { newWorkspace } from "../tools/workspace.ts";

function scene() {
  const folder = newWorkspace();
  const file = join(newWorkspace(), "undo.jsonl");
  const write = (name: string) => writeFileSync(join(folder, name), `${name}\n`);
  const command = (id: string): Permitted => ({
    id,
    name: "exec_command",
    kind: "function",
    arguments: "{}",
    askedAt: 0,
    tool: { name: "exec_command", description: "", input: {}, run: () => undefined },
    input: {},
    access: { commands: [{ shell: `make ${id}` }] },
    mutates: true,
    notes: [],
    grant: { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" },
    ruling: { decision: "allow", by: "person", reason: "approved" },
  });
  return { folder, write, command, log: createUndoLog(file), changes: createChangeTracker(folder, file) };
}

test("of two commands that ran at once, everything that either of them did can be taken back", async () => {
  const { folder, write, command, log, changes } = scene();
  await changes.beforeCall(command("one"));
  write("a");
  await changes.beforeCall(command("two"));
  write("b");
  expect(changes.afterCall("two", "s:1", 1)).toMatchObject({ paths: ["a", "b"] });
  write("c");
  expect(changes.afterCall("one", "s:1", 2)).toMatchObject({ paths: ["c"] });
  for (const record of log.all().toReversed()) await reverseTurn(record, filesToUndo(folder));
  expect(["a", "b", "c"].filter((name) => existsSync(join(folder, name)))).toEqual([]);
});

test("a command that never came back takes nothing of what happens after its turn", async () => {
  const { write, command, changes } = scene();
  await changes.beforeCall(command("lost"));
  changes.endTurn("s:1", 1);
  write("mine");
  await changes.beforeCall(command("next"));
  write("a");
  expect(changes.afterCall("lost", "s:2", 2)).toBeUndefined();
  expect(changes.afterCall("next", "s:2", 3)).toMatchObject({ paths: ["a"] });
});

test("a call that runs again with more is one command, remembered once", async () => {
  const { write, command, changes } = scene();
  await changes.beforeCall(command("one"));
  write("a");
  await changes.beforeCall(command("one"));
  write("b");
  expect(changes.afterCall("one", "s:1", 1)).toMatchObject({ paths: ["a", "b"] });
  expect(changes.afterCall("one", "s:1", 2)).toBeUndefined();
});
