import { expect, test } from "vitest";
import { chooseTools, offerTools } from "../../src/registry/offer.ts";
import { familyOf, profiles, selectProfile } from "../../src/registry/profile.ts";
import { freeform } from "../../src/spec/freeform.ts";
import type { AnyTool } from "../../src/spec/tool.ts";
import { createEngine } from "../../src/index.ts";
import { builtins } from "../../src/tools/index.ts";
import { codecs } from "../../src/wire/index.ts";

const tool = (name: string, extra: Partial<AnyTool> = {}): AnyTool => ({
  name,
  description: name,
  input: { type: "object" },
  run: () => "",
  ...extra,
});
const builtin: readonly AnyTool[] = [
  tool("shell"),
  tool("shell_command"),
  tool("local_shell", { native: { type: "local_shell" } }),
  tool("exec_command"),
  tool("write_stdin"),
  tool("read_file"),
  tool("list_dir"),
  tool("grep_files"),
  tool("apply_patch", { input: freeform({ syntax: "lark", definition: 'start: "x"' }) }),
  tool("update_plan"),
  tool("view_image"),
  tool("web_search", { native: { type: "web_search" } }),
  tool("internal_file_read"),
  tool("str_replace_editor"),
].map((one) => ({ ...one, offered: "by-profile" }));
const situation = {
  workspace: "/home/me/project",
  cwd: "/home/me/project",
  sandbox: "workspace-write",
  writableRoots: ["/home/me/project"],
  network: "off",
  canEscalate: false,
  platform: "linux",
};
const all = [...builtin, tool("github/list"), tool("my_own")];
const seen = (settings: Parameters<typeof selectProfile>[0]) =>
  chooseTools(builtin, selectProfile(settings)).map(({ name }) => name);

test.each([
  ["gpt-5-codex", ["apply_patch", "shell_command", "view_image"]],
  ["codex-mini-latest", ["local_shell", "view_image"]],
  ["gpt-5", ["shell", "view_image"]],
  ["gpt-5-mini", ["shell", "view_image"]],
  ["gpt-5-2025-08-07", ["shell", "view_image"]],
  ["gpt-5-codex-mini", ["apply_patch", "shell_command", "view_image"]],
  ["openai/gpt-5.2-codex", ["apply_patch", "exec_command", "update_plan", "view_image", "write_stdin"]],
  ["qwen3-coder", ["apply_patch", "grep_files", "list_dir", "read_file", "shell_command", "update_plan", "view_image"]],
])("%s sees the tools of its family", (model, expected) => {
  expect(seen({ model })).toEqual(expected);
});

test("features switch tools by the seeds' names", () => {
  expect(seen({ model: "gpt-5", features: { ShellTool: false } })).toEqual(["view_image"]);
  expect(seen({ model: "gpt-5", features: { UnifiedExec: true, ViewImageTool: false } })).toEqual([
    "exec_command",
    "write_stdin",
  ]);
  expect(seen({ model: "gpt-5", features: { WebSearchRequest: true, PlanTool: true } })).toEqual([
    "shell",
    "update_plan",
    "view_image",
    "web_search",
  ]);
  expect(seen({ model: "gpt-5", experimental_supported_tools: ["read_file"] })).toEqual([
    "read_file",
    "shell",
    "view_image",
  ]);
  expect(seen({ profile: "codex", features: { UnifiedExec: false } })).toContain("shell_command");
});

test("the user's own tools and servers are seen beside the built-in ones, the other built-ins are not", () => {
  const shown = chooseTools(all, selectProfile({ model: "gpt-5" })).map(({ name }) => name);
  expect(shown).toEqual(["github/list", "my_own", "shell", "view_image"]);
});

test("a profile of one's own starts from another", () => {
  const settings = { profile: "mine", profiles: { mine: { from: "gpt-5", tools: ["read_file"], own: false } } };
  expect(selectProfile(settings)).toMatchObject({ name: "mine", layout: "codex-json" });
  expect(chooseTools(all, selectProfile(settings)).map(({ name }) => name)).toEqual(["read_file"]);
  expect(seen({ profile: "internal" })).toEqual(["internal_file_read"]);
});

test("a profile is known by its name of 0.1 too, unless a user has one of that name", () => {
  expect(selectProfile({ profile: "seed" })).toEqual(selectProfile({ profile: "basic" }));
  expect(selectProfile({ profile: "seed", profiles: { seed: { own: false } } })).toMatchObject({ own: false });
});

test("an unknown profile is told with the nearest", () => {
  expect(() => selectProfile({ profile: "defualt" })).toThrow(
    /there is no profile 'defualt'; did you mean 'default'\?/,
  );
});

test("a profile decides the form: freeform and native tools where the wire has them, functions elsewhere", () => {
  const kinds = (settings: Parameters<typeof selectProfile>[0]) =>
    Object.fromEntries(offerTools(builtin, selectProfile(settings)).map((spec) => [spec.name, spec.kind]));
  expect(kinds({ profile: "gpt-5-codex" })).toMatchObject({ apply_patch: "custom", shell_command: "function" });
  expect(kinds({ profile: "gpt-5-codex", features: { ApplyPatchFreeform: false } })).toMatchObject({
    apply_patch: "function",
  });
  expect(kinds({ profile: "codex-mini-latest" })).toMatchObject({ local_shell: "native" });
  expect(
    Object.values(kinds({ profile: "xml", features: { WebSearchRequest: true } })).every((kind) => kind === "function"),
  ).toBe(true);
});

test("the same tools give the same bytes whatever their order", () => {
  const profile = selectProfile({});
  expect(JSON.stringify(offerTools(all.toReversed(), profile))).toBe(JSON.stringify(offerTools(all, profile)));
});

test("every family names a profile that exists", () => {
  for (const model of ["gpt-5", "gpt-5.1", "gpt-6", "codex-mini-latest", "claude-opus", ""])
    expect(profiles.some(({ name }) => name === familyOf(model))).toBe(true);
});

test("a short profile leaves out what few models need; the call may carry it all the same", async () => {
  const told = (profile: string, canEscalate = false) =>
    Object.fromEntries(
      offerTools(builtins, selectProfile({ profile }), { ...situation, canEscalate }).flatMap((spec) =>
        spec.kind === "function" ? [[spec.name, Object.keys(spec.parameters["properties"] as object)]] : [],
      ),
    );
  expect(told("default")).toMatchObject({
    read_file: ["file_path", "offset", "limit"],
    shell_command: ["command", "workdir", "timeout_ms"],
  });
  expect(told("default", true)["shell_command"]).toContain("justification");
  expect(told("gpt-5-codex", true)["shell_command"]).toContain("with_escalated_permissions");
  expect(told("gpt-5-codex")["shell_command"]).not.toContain("with_escalated_permissions");
  const engine = createEngine({ tools: builtins, approval: "never" });
  const ended = await engine.call("read_file", { file_path: "package.json", mode: "indentation", offset: 2 });
  await engine.close();
  expect(ended.ok).toBe(true);
});

test("the tools of a first request weigh less than 4 KB", () => {
  const specs = offerTools(builtins, selectProfile({}), situation);
  const { body } = codecs.responses.encodeRequest({ model: "m", input: [], tools: specs });
  expect(JSON.stringify(body["tools"]).length).toBeLessThan(4_096);
});
