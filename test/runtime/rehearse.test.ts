import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { Json } from "../../src/base/json.ts";
import type { ApprovalRequest } from "../../src/spec/stages.ts";
import { engineIn, newWorkspace } from "../tools/workspace.ts";

let ws: string;
beforeEach(() => {
  ws = newWorkspace();
  writeFileSync(join(ws, "a"), "1\n2\n");
});

/** What a person is shown when a call asks; the answer is no. */
async function shownFor(tool: string, input: Json | string): Promise<string | undefined> {
  const asked: ApprovalRequest[] = [];
  const { engine } = engineIn(ws, {
    approval: "unless-trusted",
    approver: {
      ask: async (request) => {
        asked.push(request);
        return { answer: "no" };
      },
    },
  });
  expect(await engine.call(tool, input)).toMatchObject({ ok: false });
  return asked[0]?.diff;
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
