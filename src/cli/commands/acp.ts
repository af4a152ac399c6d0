import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import { buildCommand } from "@stricli/core";
import type { AcpCommand, AcpHost, OpenedSession, OpenOptions } from "../../acp/agent.ts";
import type { Json } from "../../base/json.ts";
import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { approvalNames, sandboxNames, type ApprovalName, type SandboxName } from "../../gate/modes.ts";
import { readServers } from "../../mcp/config.ts";
import { listSessions, readJournal } from "../../store/index.ts";
import { listModelsOf } from "../select-model.ts";
import { assemble, type Assembled } from "../assemble.ts";
import { sessionFlags, type SessionFlags } from "../config/flags.ts";
import { fillIn } from "../guidance/prompts.ts";
import { runCommand, UsageError } from "../io.ts";
import { reserveStdout } from "../mcp/serve.ts";
import { prepare } from "../prepare.ts";
import { version } from "../version.ts";

export const command = buildCommand({
  docs: {
    brief: "run as an agent for editors (Zed, JetBrains, Neovim): the Agent Client Protocol on stdin and stdout",
  },
  parameters: { flags: sessionFlags },
  func: (flags: SessionFlags) =>
    runCommand(async () => {
      const { input, output } = reserveStdout();
      const { ndJsonStream } = await import("@agentclientprotocol/sdk");
      const { serveAcp } = await import("../../acp/agent.ts");
      const stream = ndJsonStream(Writable.toWeb(output), Readable.toWeb(input) as ReadableStream<Uint8Array>);
      await serveAcp(stream, createHost(flags)).closed;
    }),
});

function createHost(flags: SessionFlags): AcpHost {
  const state = stateDir(process.env);
  return {
    version,
    open: (options) => openSession(flags, options),
    list: (cwd) => listSessions(state).filter((found) => cwd === undefined || found.cwd === cwd),
    remove(id) {
      const found = listSessions(state).find((session) => session.id === id);
      if (found !== undefined) rmSync(found.path, { force: true });
    },
  };
}

async function openSession(flags: SessionFlags, options: OpenOptions): Promise<OpenedSession> {
  const { cwd, additionalDirectories, approver, warn, resume, fork, model: chosen } = options;
  const addDir = [...(flags.addDir ?? []).map((folder) => resolve(folder)), ...additionalDirectories];
  const prepared = await prepare({ ...flags, cwd, addDir, ...defined({ model: chosen }) });
  if (resume !== undefined && !listSessions(stateDir(process.env)).some(({ id }) => id === resume))
    throw new UsageError(`there is no session '${resume}'`);
  const config = {
    ...prepared.config,
    mcpServers: { ...prepared.config.mcpServers, ...soundServers(options.mcpServers, warn) },
  };
  const assembled = await assemble({
    config,
    cwd: prepared.cwd,
    env: process.env,
    approver,
    // A chosen model takes precedence over the one that the session had.
    flags: chosen === undefined ? flags : { ...flags, model: chosen },
    // The first request already includes the tools of the editor's servers, if they are quick.
    servers: { warn, waitMs: 5_000 },
    ...defined({ resume, fork }),
  });
  const { engine, session, close } = assembled;
  return {
    engine,
    session,
    model: assembled.model.model.name,
    async models() {
      const found = await listModelsOf(assembled.config, process.env);
      return found.ok ? found.models : [];
    },
    policy: policyOf(assembled.config),
    commands: slashCommands(assembled),
    close,
    ...defined({ contextWindow: assembled.config.context_window, plan: planOf(assembled.journalPath) }),
  };
}

/** The settings were checked before, because an unknown word would have stopped the start. */
function policyOf({ approval, sandbox }: Assembled["config"]) {
  return {
    approval: approvalNames.find((name) => name === approval) ?? ("on-request" satisfies ApprovalName),
    sandbox: sandboxNames.find((name) => name === sandbox) ?? ("workspace-write" satisfies SandboxName),
  };
}

/** An editor's server that cannot be used is reported and left out. The session starts without it. */
function soundServers(table: OpenOptions["mcpServers"], warn: (message: string) => void): OpenOptions["mcpServers"] {
  const { problems } = readServers(table, {});
  for (const { server, what } of problems) warn(`the MCP server '${server}' is left out: ${what}`);
  const broken = new Set(problems.map(({ server }) => server));
  return Object.fromEntries(Object.entries(table).filter(([name]) => !broken.has(name)));
}

function planOf(journalPath: string | undefined): Json | undefined {
  if (journalPath === undefined) return undefined;
  // Each line matched its checksum: the plan is JSON that we wrote.
  return readJournal(journalPath).records.findLast(({ type }) => type === "plan.updated")?.["plan"] as Json | undefined;
}

function slashCommands({ session, engine, model, config, prompts }: Assembled): readonly AcpCommand[] {
  return [
    {
      name: "compact",
      description: "shortens the conversation to its essence",
      async run() {
        await session.compact();
        return { say: "The conversation has been shortened." };
      },
    },
    {
      name: "tools",
      description: "what the model can call",
      run: async () => ({
        say:
          session
            .tools()
            .map(({ name }) => `- ${name}`)
            .join("\n") || "No tools.",
      }),
    },
    {
      name: "status",
      description: "model, sandbox, approval mode, cost so far",
      async run() {
        const { sandbox, network, writableRoots } = engine.situation();
        const { input, output } = session.usage;
        const lines = [
          `model: ${model.model.name} over ${model.wire}`,
          `sandbox: ${sandbox}, network ${network}; may write: ${writableRoots.join(", ") || "nothing"}`,
          `approval in the settings: ${policyOf(config).approval}`,
          `tokens: ${input} in, ${output} out; cost: ${session.costUsd.toFixed(4)} USD`,
          `session: ${session.id}`,
        ];
        return { say: lines.map((line) => `- ${line}`).join("\n") };
      },
    },
    ...prompts.commands.map(({ name, description, argumentHint, body }) => ({
      name,
      description,
      ...(argumentHint === undefined ? {} : { hint: argumentHint }),
      run: async (argument: string) => ({ prompt: fillIn(body, argument) }),
    })),
  ];
}
