import { buildCommand } from "@stricli/core";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stateDir } from "../../base/paths.ts";
import type { SessionEvent } from "../../session/index.ts";
import type { Approver } from "../../spec/stages.ts";
import { assemble } from "../assemble.ts";
import { createDemoWorkspace, repairJob } from "../demo-workspace.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand } from "../io.ts";
import { createTimeline } from "../chat/timeline.ts";

interface DemoFlags {
  readonly wire: string;
  readonly json?: boolean;
}

export const command = buildCommand({
  docs: { brief: "run a small repair job, end to end, on the built-in offline model" },
  parameters: {
    flags: {
      wire: {
        kind: "parsed",
        parse: String,
        default: "responses",
        brief: "responses, chat, messages, gemini or text:DIALECT",
        placeholder: "WIRE",
      },
      json: toggle("events as JSON lines"),
    },
  },
  func: (flags: DemoFlags) => runCommand(() => demo(flags)),
});

/** Stands in for the person at the terminal: prints the question and says no. */
function sceptic(tell: (line: string) => void): Approver {
  return {
    async ask(request) {
      tell(`  ? ${request.call.tool} asks: ${request.reason}\n    → no (this is where you would be asked)`);
      return { answer: "no", message: "Not in a demo." };
    },
  };
}

async function demo(flags: DemoFlags): Promise<number> {
  const cwd = createDemoWorkspace(join(stateDir(process.env), "demo"));
  const tell = flags.json ? () => undefined : print;
  tell(
    `Callgate demo. The model is the built-in offline planner (no language model, no key, no network); all else is real:\na model server on 127.0.0.1 speaking '${flags.wire}', the gate, the sandbox, the tools, an MCP server, the journal.\nWorkspace: ${cwd}\n`,
  );
  const self = {
    self: {
      command: process.execPath,
      args: [process.argv[1]!, "mcp", "serve", "--cwd", cwd],
      enabled_tools: ["read_file"],
    },
  };
  const config = {
    model: "offline",
    wire: flags.wire,
    sandbox: "workspace-write",
    approval: "on-request",
    mcpServers: self,
  };
  const { session, engine, journalPath, close } = await assemble({
    config,
    cwd,
    env: process.env,
    approver: sceptic(tell),
  });
  const show = createTimeline({ words: (text) => process.stdout.write(text), line: tell });
  const seen: SessionEvent[] = [];
  for await (const event of session.send(repairJob)) {
    seen.push(event);
    if (flags.json) printJson(event, false);
    else show(event);
  }
  const confinement = await engine.confinement();
  await close();
  const failures = check(seen, cwd);
  if (!flags.json) summarize(seen, { confinement: confinement.name, journalPath, failures });
  return failures.length === 0 ? exitCodes.done : exitCodes.failed;
}

/** The demo tests itself: what it claims to show must have happened. */
function check(events: readonly SessionEvent[], cwd: string): readonly string[] {
  const ended = events.flatMap((event) => (event.type === "call.ended" ? [event.call] : []));
  const tests = ended.filter(({ input }) => JSON.stringify(input)?.includes("node --test"));
  const claims: readonly (readonly [string, boolean])[] = [
    ["the test failed before the change", tests[0]?.exitCode !== 0],
    ["the test passed after it", tests[1]?.exitCode === 0],
    ["the file was changed", readFileSync(join(cwd, "src/add.js"), "utf8").includes("a + b")],
    ["nothing was written outside the workspace", !existsSync("/etc/callgate-demo")],
    [
      "the dangerous command did not run",
      ended.some(({ code, input }) => code === "rejected" && JSON.stringify(input).includes("rm -rf")),
    ],
    ["an MCP server's tool was called", ended.some(({ tool, ok }) => tool === "self/read_file" && ok)],
    ["the turn ended by itself", events.at(-1)?.type === "turn.ended"],
  ];
  return claims.filter(([, held]) => !held).map(([claim]) => claim);
}

function summarize(
  events: readonly SessionEvent[],
  at: { readonly confinement: string; readonly journalPath: string | undefined; readonly failures: readonly string[] },
): void {
  const end = events.findLast((event) => event.type === "turn.ended");
  print("\nWhat this showed");
  print(
    `  ${end?.requests ?? 0} requests and ${end?.calls ?? 0} calls in ${((end?.durationMs ?? 0) / 1000).toFixed(1)} s; every call was checked, gated, run and recorded`,
  );
  print(`  commands ran confined by: ${at.confinement}`);
  print("  a write outside the workspace was stopped by the sandbox; 'rm -rf ~' was asked about and refused");
  if (at.journalPath !== undefined) {
    // `npm start` in a clone: the command is not on the PATH there.
    const self = process.env["npm_lifecycle_event"] === undefined ? "callgate" : "npx callgate";
    print(`  journal: ${at.journalPath}`);
    print(`  see it again: ${self} show last · ${self} replay last · ${self} export last --format html`);
    print(`  go on: ${self} (a session here) · ${self} init (a model of your own)`);
  }
  for (const failure of at.failures) print(`  ✗ this did not happen: ${failure}`);
}
