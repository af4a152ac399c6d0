/** Real servers' questions and requests for a model, through the real command: at a terminal, and without one. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { program } from "../mcp/connect.ts";
import { run, tempFolder } from "./run.ts";
import { hasTmux, openTerminal, readQuestion } from "./tmux.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A home with server-everything, whose tools may be called without asking. */
function home(more = ""): string {
  const folder = tempFolder("state");
  const args = JSON.stringify([program("@modelcontextprotocol/server-everything"), "stdio"]);
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "callgate.toml"),
    `[mcpServers.every]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${args}\ndefault_tools_approval_mode = "approve"\n${more}\n`,
  );
  return folder;
}

const sample = ["mcp", "call", "every/trigger-sampling-request", '{"prompt": "hello", "maxTokens": 50}'];

test("without a terminal a server's question is declined, and the reason is said", async () => {
  const asked = await run(["mcp", "call", "every/trigger-elicitation-request"], { env: { CALLGATE_HOME: home() } });
  expect(asked.stdout).toContain("declined");
  expect(asked.stderr).toContain("nobody can be asked here");
});

test("a server gets a model's words only where its settings say so, and where the gate agrees", async () => {
  const off = await run(sample, { env: { CALLGATE_HOME: home() } });
  expect(off.code).not.toBe(0);
  const on = await run(sample, { env: { CALLGATE_HOME: home("sampling = true") } });
  expect(on.stdout).toMatch(/LLM sampling result.*offline/s);
  const rule = `sampling = true\n[mcpServers.every.tools."(sampling)"]\napproval_mode = "deny"`;
  const denied = await run(sample, { env: { CALLGATE_HOME: home(rule) } });
  expect(denied.stdout + denied.stderr).toContain("Not permitted");
});

test.runIf(hasTmux)("at a plain terminal a form is asked field by field (needs tmux)", async () => {
  const terminal = openTerminal({ args: ["mcp", "call", "every/trigger-elicitation-request"], home: home() });
  closing.push(terminal.close);
  await terminal.sees("The MCP server 'every' asks");
  expect(terminal.screen()).toContain("(text, required)");
  await readQuestion();
  terminal.type("1");
  terminal.key("Enter");
  await readQuestion();
  terminal.type("Ada");
  terminal.key("Enter");
  await readQuestion();
  terminal.key("C-d");
  await terminal.sees("ended with 0");
});

test.runIf(hasTmux)("in the interactive session a page's address is shown, and no is a no (needs tmux)", async () => {
  const terminal = openTerminal({ home: home() });
  closing.push(terminal.close);
  await terminal.sees("offline planner");
  terminal.type(`call every/trigger-url-elicitation {"url": "https://pay.example/now"}`);
  terminal.key("Enter");
  await terminal.sees("It wants you to open a page on  pay.example");
  await new Promise((resolve) => setTimeout(resolve, 900)); // a question takes no key while it has just appeared
  terminal.key("Down");
  terminal.key("Down");
  terminal.key("Enter");
  await terminal.sees(/declin/i);
});

test.runIf(hasTmux)("in the interactive session a form is filled in, checked and sent (needs tmux)", async () => {
  const terminal = openTerminal({ home: home() });
  closing.push(terminal.close);
  await terminal.sees("offline planner");
  terminal.type("call every/trigger-elicitation-request {}");
  terminal.key("Enter");
  await terminal.sees("The MCP server 'every' asks");
  await new Promise((resolve) => setTimeout(resolve, 900));
  terminal.key("Enter");
  await terminal.sees("? String: Your full, legal name");
  terminal.type("Ada");
  terminal.key("Enter");
  // The rest is optional: giving up half-way sends nothing.
  await terminal.sees(/\? (?!String)\w/);
  await new Promise((resolve) => setTimeout(resolve, 900));
  terminal.key("Escape");
  await terminal.sees(/cancel/i);
});
