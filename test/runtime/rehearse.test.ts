import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { Json } from "../../src/base/json.ts";
import { defineTool, type EngineOptions } from "../../src/index.ts";
import { createSessionRecorder } from "../../src/session/recorder.ts";
import type { ApprovalRequest } from "../../src/spec/stages.ts";
import { engineIn, newWorkspace } from "../tools/workspace.ts";

let ws: string;
beforeEach(() => {
  ws = newWorkspace();
  writeFileSync(join(ws, "a"), "1\n2\n");
});

/** What a person is asked; the answer is no. */
async function askedFor(tool: string, input: Json | string, options: Partial<EngineOptions> = {}) {
  const asked: ApprovalRequest[] = [];
  const { engine } = engineIn(ws, {
    approval: "unless-trusted",
    approver: {
      ask: async (request) => {
        asked.push(request);
        return { answer: "no" };
      },
    },
    ...options,
  });
  expect(await engine.call(tool, input)).toMatchObject({ ok: false, code: "rejected" });
  return { request: asked[0]! };
}

async function shownFor(...args: Parameters<typeof askedFor>): Promise<string | undefined> {
  return (await askedFor(...args)).request.diff;
}

test("a patch, an edit and a written file are shown as what they would change, and change nothing", async () => {
  const patch = "*** Begin Patch\n*** Update File: a\n@@\n-2\n+two\n*** Add File: ../out\n+x\n*** End Patch";
  expect(await shownFor("apply_patch", patch)).toBe(
    "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\ndiff --git a/../out b/../out\nnew file mode 100644\n--- /dev/null\n+++ b/../out\n@@ -0,0 +1,1 @@\n+x\n",
  );
  expect(
    await shownFor("str_replace_editor", { command: "str_replace", path: "a", old_str: "1", new_str: "one" }),
  ).toContain("-1\n+one\n");
  expect(await shownFor("internal_file_write", { path: "b", content: "new\n" })).toContain("+new\n");
  expect(readFileSync(join(ws, "a"), "utf8")).toBe("1\n2\n");
  expect(existsSync(join(ws, "b"))).toBe(false);
  expect(existsSync(join(ws, "../out"))).toBe(false);
});

test("a call that will fail, or that is no change of files, shows no diff", async () => {
  expect(await shownFor("apply_patch", "*** Begin Patch\n*** Delete File: none\n*** End Patch")).toBeUndefined();
  expect(await shownFor("shell_command", { command: "rm -rf /" })).toBeUndefined();
});

test("nothing of a masked file, or of one that looks like a secret, is shown; neither by a link to it", async () => {
  const home = newWorkspace();
  mkdirSync(join(home, ".ssh"));
  writeFileSync(join(home, ".ssh/id_ed25519"), "PRIVATE KEY LINE\n");
  writeFileSync(join(ws, ".env"), "TOKEN=hunter2\n");
  symlinkSync(join(ws, ".env"), join(ws, "notes"));
  symlinkSync(join(home, ".ssh/id_ed25519"), join(ws, "key"));
  const mask = { gate: { mask: [join(home, ".ssh")] } };
  for (const path of [join(home, ".ssh/id_ed25519"), "key"])
    expect((await shownFor("internal_file_write", { path, content: "x" }, mask)) ?? "").not.toContain("PRIVATE");
  for (const path of [".env", "notes"]) {
    const shown = await shownFor("internal_file_write", { path, content: "TOKEN=x\n" }, mask);
    expect(shown ?? "").not.toContain("hunter2");
  }
  expect(await shownFor("internal_file_write", { path: ".env", content: "x" }, mask)).toContain("may hold secrets");
});

test("a handler that hangs, throws, or wants more than files shows nothing and holds nobody up", async () => {
  const input = { type: "object" } as const;
  const shared = { description: "x", input, mutates: true, rehearsable: true, access: { write: ["b"] } };
  let runs = 0;
  const tools = [
    defineTool({ ...shared, name: "hangs", run: () => new Promise<string>(() => runs++) }),
    defineTool({
      ...shared,
      name: "throws",
      run: () => {
        throw new Error("no");
      },
    }),
    defineTool({ ...shared, name: "reaches", run: (_, ctx) => ctx.fetch("http://127.0.0.1:9/").then(() => "x") }),
    defineTool({ ...shared, name: "moves", run: async (_, ctx) => ctx.files.move("a", "b") }),
    defineTool({ ...shared, name: "unsaid", rehearsable: false, run: () => void runs++ }),
  ];
  for (const { name } of tools) expect(await shownFor(name, {}, { tools })).toBeUndefined();
  // The one that hangs was started once, for the rehearsal; the one that does not offer itself never was.
  expect(runs).toBe(1);
  expect(readFileSync(join(ws, "a"), "utf8")).toBe("1\n2\n");
});

test("a long diff is cut, and a session's journal keeps none", async () => {
  const shown = await shownFor("internal_file_write", {
    path: "b",
    content: "a line of some length, thirty\n".repeat(4_000),
  });
  expect(shown?.length).toBeLessThan(70_000);
  expect(shown).toContain("The rest of the diff is left out.");
  const records: unknown[] = [];
  const recorder = createSessionRecorder({ append: (record) => void records.push(record), close() {} });
  const { request } = await askedFor("internal_file_write", { path: "a", content: "new\n" });
  expect(request.diff).toContain("+new");
  recorder.write({ type: "approval.asked", id: "1", request });
  expect(JSON.stringify(records)).toContain("approval.asked");
  expect(JSON.stringify(records)).not.toContain("@@");
});
