/** The user's rules on the calls of other people's agents: one table of their tools, one policy. */
import { expect, test } from "vitest";
import { toSettings } from "../../src/gate/modes.ts";
import { createPolicy } from "../../src/gate/options.ts";
import { createPolicyJudge } from "../../src/gateway/index.ts";

const judge = createPolicyJudge(
  createPolicy({
    settings: { ...toSettings(undefined, undefined), approval: "on-request" },
    workspace: "/project",
    confinement: { name: "the client's own", available: false },
    rules: [
      { command: ["rm", "-rf"], decision: "deny" },
      { path: "/etc/**", decision: "deny" },
      { tool: "mcp__mail__*", decision: "deny" },
    ],
  }),
);
const asked = (name: string, input: object | string) =>
  judge({
    type: "call",
    id: "1",
    name,
    kind: typeof input === "string" ? "custom" : "function",
    arguments: typeof input === "string" ? input : JSON.stringify(input),
    complete: true,
  });

test.each([
  ["Bash", { command: "cd x && rm -rf /" }],
  ["bash", { command: "rm -rf build" }],
  ["exec_command", { cmd: "bash -lc 'rm -rf /home'" }],
  ["shell", { command: ["rm", "-rf", "/"] }],
  ["run_shell_command", { command: "sudo rm -rf /" }],
  ["execute_command", { command: "rm -rf /" }],
  ["Write", { file_path: "/etc/passwd", content: "" }],
  ["edit", { filePath: "/etc/passwd" }],
  ["write_file", { file_path: "/etc/passwd" }],
  ["apply_patch", "*** Begin Patch\n*** Update File: /etc/hosts\n*** End Patch"],
  ["apply_patch", { input: "*** Begin Patch\n*** Add File: /etc/new\n*** End Patch" }],
  ["mcp__mail__send", { to: "everybody" }],
] as const)("%s %j is refused", async (name, input) => {
  expect(await asked(name, input)).toMatchObject({ reason: expect.any(String) });
});

test.each([
  ["Bash", { command: "ls" }],
  ["Write", { file_path: "/project/a.txt", content: "" }],
  ["mcp__notes__add", { text: "rm -rf /" }],
] as const)("%s %j goes to the client, which asks its own user", async (name, input) => {
  expect(await asked(name, input)).toBeUndefined();
});
