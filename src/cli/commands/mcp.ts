import { join } from "node:path";
import { Writable } from "node:stream";
import { buildCommand, buildRouteMap } from "@stricli/core";
import { partsToText } from "../../base/content.ts";
import { stateDir } from "../../base/paths.ts";
import { toVisible } from "../../gate/show.ts";
import type { AnyTool } from "../../index.ts";
import { createEngine } from "../../router/engine.ts";
import { engineOptions } from "../engine-options.ts";
import { sessionFlags, type SessionFlags } from "../flags.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";
import { serverTable } from "../mcp-clients.ts";
import { chooseProfile, createOffer } from "../offered-tools.ts";
import { loadOwnTools } from "../own-tools.ts";
import { prepare } from "../prepare.ts";
import { firstLine } from "../timeline.ts";
import { version } from "../version.ts";

interface ServeFlags extends SessionFlags {
  readonly http?: number;
}

interface ListFlags extends SessionFlags {
  readonly json: boolean;
}

const json = { kind: "boolean", default: false, brief: "as JSON" } as const;
const serverName = { brief: "the server", parse: String, placeholder: "SERVER" } as const;

const serve = buildCommand({
  docs: { brief: "the governed tools as an MCP server, over stdio or --http PORT" },
  parameters: {
    flags: {
      ...sessionFlags,
      http: {
        kind: "parsed",
        parse: Number,
        optional: true,
        brief: "serve /mcp on 127.0.0.1 at this port instead of stdio",
        placeholder: "PORT",
      },
    },
  },
  func: (flags: ServeFlags) => runCommand(() => startServing(flags)),
});

const list = buildCommand({
  docs: { brief: "the configured servers and how they are" },
  parameters: { flags: { ...sessionFlags, json } },
  func: (flags: ListFlags) => runCommand(() => listServers(flags)),
});

const tools = buildCommand({
  docs: { brief: "a server's tools, as it describes them; --accept trusts changed ones" },
  parameters: {
    flags: {
      ...sessionFlags,
      json,
      accept: { kind: "boolean", default: false, brief: "I have looked: offer them as they are now" },
    },
    positional: { kind: "tuple", parameters: [serverName] },
  },
  func: (flags: ListFlags & { readonly accept: boolean }, server: string) => runCommand(() => showTools(flags, server)),
});

const call = buildCommand({
  docs: { brief: "one call of a server's tool, through the gate" },
  parameters: {
    flags: { ...sessionFlags, json },
    positional: {
      kind: "tuple",
      parameters: [
        serverName,
        { brief: "the tool", parse: String, placeholder: "TOOL" },
        { brief: "its arguments", parse: String, placeholder: "JSON", optional: true },
      ],
    },
  },
  func: (flags: ListFlags, server: string, tool: string, input?: string) =>
    runCommand(() => callTool(flags, `${server}/${tool}`, input ?? "{}")),
});

export const command = buildRouteMap({
  routes: { serve, list, tools, call },
  docs: { brief: "be an MCP server, or look at the configured ones" },
});

async function startServing(flags: ServeFlags): Promise<void> {
  const stdio = flags.http === undefined ? reserveStdout() : undefined;
  const { cwd, config } = await prepare(flags);
  const { createElicitingApprover, createServedResources, serveMcp } = await import("../../mcp/index.ts");
  const { readText, resourceFolders } = await import("../mcp-resources.ts");
  const approver = createElicitingApprover();
  const state = stateDir(process.env);
  const spillDir = join(state, "outputs", `mcp-${process.pid}-${Date.now()}`);
  const engine = createEngine({ ...(await engineOptions(config, cwd, process.env, { spillDir })), approver });
  const own = await loadOwnTools(engine, config, cwd);
  const offer = createOffer(engine, chooseProfile(config, config.model));
  const shows = (tool: AnyTool) => tool.name.includes("/") || offer().some(({ name }) => name === tool.name);
  const server = await serveMcp({
    engine,
    approver,
    shows,
    resources: createServedResources({ folders: resourceFolders(state, engine.workspace, spillDir), readText }),
    version,
    tell: say,
    ...(stdio === undefined ? {} : { stdio }),
    ...(flags.http === undefined ? {} : { port: flags.http }),
    ...(process.env["CALLGATE_MCP_TOKEN"] === undefined ? {} : { token: process.env["CALLGATE_MCP_TOKEN"] }),
  });
  await Promise.race([server.closed, stopAsked()]);
  await server.close();
  await own.close();
  await engine.close();
}

function stopAsked(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => resolve());
  });
}

/** stdout belongs to the protocol alone: what a tool of the user's prints there goes to stderr. */
function reserveStdout() {
  const write = process.stdout.write.bind(process.stdout);
  const output = new Writable({ write: (chunk: Buffer, _encoding, done) => void write(chunk, done) });
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
  return { input: process.stdin, output };
}

async function withServers<Result>(
  flags: SessionFlags,
  body: (at: {
    readonly engine: ReturnType<typeof createEngine>;
    readonly mcp: NonNullable<Awaited<ReturnType<typeof loadOwnTools>>["mcp"]>;
  }) => Promise<Result>,
): Promise<Result> {
  const { cwd, config } = await prepare(flags);
  if (Object.keys(serverTable(config, cwd)).length === 0)
    throw new UsageError("no MCP server is configured ([mcpServers] in callgate.toml)");
  const engine = createEngine(await engineOptions(config, cwd, process.env));
  const { mcp, close } = await loadOwnTools(engine, config, cwd);
  try {
    return await body({ engine, mcp: mcp! });
  } finally {
    await close();
    await engine.close();
  }
}

async function listServers(flags: ListFlags): Promise<void> {
  await withServers(flags, async ({ mcp }) => {
    const rows = await Promise.all(
      [...mcp.connections].map(async ([name, connection]) => {
        const found = await connection.listTools().catch(() => undefined);
        return {
          name,
          state: connection.state(),
          tools: found?.length ?? 0,
          ...(connection.problem() === undefined ? {} : { problem: connection.problem() }),
        };
      }),
    );
    if (flags.json) return printJson(rows);
    for (const { name, state, tools: count, problem } of rows)
      print(
        `${name.padEnd(20)} ${state.padEnd(9)} ${count} tools${problem === undefined ? "" : `  ${firstLine(problem)}`}`,
      );
  });
}

async function showTools(flags: ListFlags & { readonly accept: boolean }, server: string): Promise<number> {
  return withServers(flags, async ({ mcp }) => {
    const connection = mcp.connections.get(server);
    if (connection === undefined)
      throw new UsageError(`there is no MCP server '${server}': ${[...mcp.connections.keys()].join(", ")}`);
    const found = await connection.listTools();
    if (flags.accept) await mcp.accept(server);
    const held = new Set(mcp.quarantined().get(server) ?? []);
    if (flags.json) printJson(found.map((tool) => ({ ...tool, held: held.has(tool.name) })));
    else
      for (const tool of found)
        print(
          `${held.has(tool.name) ? "held back  " : ""}${server}/${tool.name}\n    ${toVisible(tool.description ?? "").replaceAll("\n", "\n    ")}`,
        );
    return exitCodes.done;
  });
}

async function callTool(flags: ListFlags, name: string, raw: string): Promise<number> {
  return withServers(flags, async ({ engine, mcp }) => {
    // A known server is started by its first call; a new one has been started already.
    void mcp;
    const ended = await engine.run(
      { id: "call_1", name, kind: "function", arguments: raw, askedAt: Date.now() },
      new AbortController().signal,
    );
    if (flags.json) printJson(ended);
    else print(toVisible(partsToText(ended.content)));
    if (ended.ok) return exitCodes.done;
    return ended.code === "denied" || ended.code === "needs_approval" || ended.code === "rejected"
      ? exitCodes.refused
      : exitCodes.failed;
  });
}
