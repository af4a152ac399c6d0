import { expect, test } from "vitest";
import { testSyncTool } from "../../src/testing/sync-tool.ts";
import { applyPatchFiles, applyPatchFunction, builtins, internalTools } from "../../src/tools/index.ts";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { engineIn, newWorkspace } from "./workspace.ts";

test("the plan is kept for the session and told as an event; two steps in progress are refused", async () => {
  const { engine, ask } = engineIn(newWorkspace());
  const told: unknown[] = [];
  engine.on((event) => event.type === "call.progress" && told.push(event.progress));
  expect(await ask("update_plan", { plan: [{ step: "look", status: "in_progress" }], explanation: "why" })).toBe(
    "Plan updated",
  );
  expect(told).toMatchObject([
    { data: { type: "plan.updated", plan: [{ step: "look", status: "in_progress" }], explanation: "why" } },
  ]);
  const two = { plan: [1, 2].map((each) => ({ step: String(each), status: "in_progress" })) };
  await expect(ask("update_plan", two)).rejects.toThrow(/2 steps are in progress/);
  await expect(ask("update_plan", { plan: [{ step: "x", status: "later" }] })).rejects.toThrow(/invalid_input/);
});

test("a web search goes to the host's function, and says so where there is none", async () => {
  const asked: unknown[] = [];
  const webSearch = async (query: string, { count }: { count: number }) => {
    asked.push(query, count);
    return [{ title: "T", url: "https://t.example", snippet: "s" }];
  };
  expect(await engineIn(newWorkspace(), { service: { webSearch } }).ask("web_search", { query: "q" })).toBe(
    "1. T\nhttps://t.example\ns",
  );
  expect(asked).toEqual(["q", 5]);
  await expect(engineIn(newWorkspace()).ask("web_search", { query: "q" })).rejects.toThrow(/no web search here/);
});

test("calls that meet at a barrier were running at once; one alone gives up", async () => {
  const { call } = engineIn(newWorkspace(), { tools: [testSyncTool] });
  const barrier = { id: "b", participants: 3, timeout_ms: 2_000 };
  const ended = await Promise.all([1, 2, 3].map(() => call("test_sync_tool", { barrier })));
  expect(ended.map(({ ok, content }) => [ok, content[0]])).toEqual(
    Array.from({ length: 3 }, () => [true, { type: "text", text: "ok" }]),
  );
  expect(await call("test_sync_tool", { barrier: { ...barrier, timeout_ms: 20 } })).toMatchObject({
    ok: false,
    code: "timeout",
  });
  expect(await call("test_sync_tool", { sleep_before_ms: 5, sleep_after_ms: 5 })).toMatchObject({ ok: true });
});

test("apply_patch takes text, a function's input and whole files", async () => {
  const ws = newWorkspace();
  const patch = "*** Begin Patch\n*** Add File: a\n+1\n*** End Patch";
  expect(await engineIn(ws).ask("apply_patch", patch)).toContain("A a");
  expect(
    await engineIn(ws, { tools: [applyPatchFunction] }).ask("apply_patch", { input: patch.replace(": a", ": b") }),
  ).toContain("A b");
  const whole = engineIn(ws, { tools: [applyPatchFiles] });
  expect(
    await whole.ask("apply_patch", {
      files: [
        { path: "a", content: "2" },
        { path: "d/c", content: "3" },
      ],
    }),
  ).toBe("Success. Updated the following files:\nA d/c\nM a");
  expect(readFileSync(join(ws, "a"), "utf8")).toBe("2");
  await expect(
    whole.ask("apply_patch", {
      files: [
        { path: "e", content: "" },
        { path: "../out", content: "" },
      ],
    }),
  ).rejects.toThrow();
  expect(existsSync(join(ws, "e"))).toBe(false);
});

test("a patch that cannot be read is told before anybody is asked to approve it", async () => {
  const { call } = engineIn(newWorkspace());
  expect(await call("apply_patch", "nonsense")).toMatchObject({ ok: false, code: "invalid_input" });
});

test("of patches to one file at the same time none is lost", async () => {
  const ws = newWorkspace();
  writeFileSync(join(ws, "f"), "1\n2\n3\n4\n5\n");
  const { call } = engineIn(ws);
  await Promise.all(
    [1, 2, 3, 4, 5].map((each) =>
      call("apply_patch", `*** Begin Patch\n*** Update File: f\n@@\n-${each}\n+<${each}>\n*** End Patch`),
    ),
  );
  expect(readFileSync(join(ws, "f"), "utf8")).toBe("<1>\n<2>\n<3>\n<4>\n<5>\n");
});

test("the built-ins have names of their own, say what they touch, and only lookers run side by side", () => {
  expect(new Set(builtins.map(({ name }) => name)).size).toBe(builtins.length);
  expect(internalTools.map(({ name }) => name).toSorted()).toEqual(
    [
      "code_analyze",
      "code_format",
      "code_search",
      "database_query",
      "database_update",
      "file_copy",
      "file_delete",
      "file_list",
      "file_mkdir",
      "file_move",
      "file_read",
      "file_write",
      "network_download",
      "network_request",
      "system_env",
      "system_execute",
      "system_info",
    ].map((name) => `internal_${name}`),
  );
  for (const name of ["read_file", "list_dir", "grep_files", "view_image"]) {
    expect(builtins.find((tool) => tool.name === name)).toMatchObject({ parallel: true, mutates: false });
  }
});
