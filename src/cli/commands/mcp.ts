import { buildCommand, buildRouteMap } from "@stricli/core";
import { defined } from "../../base/json.ts";
import { partsToText } from "../../base/content.ts";
import { isRefusal } from "../../base/error.ts";
import { toVisible } from "../../gate/show.ts";
import type { McpClients } from "../../mcp/index.ts";
import { createEngine } from "../../router/engine.ts";
import { engineOptions } from "../engine-options.ts";
import {
  folderFlags,
  policyFlags,
  toggle,
  toolFlags,
  type PolicyFlags,
  type FolderFlags,
  readPort,
} from "../config/flags.ts";
import { exitCodes, print, printJson, readInput, runCommand, UsageError } from "../io.ts";
import { serverTable } from "../mcp/server-table.ts";
import { personHere } from "../chat/person-here.ts";
import type { AddFlags } from "../mcp/edit-settings.ts";
import type { LoginFlags } from "../mcp/login.ts";
import type { ServeFlags } from "../mcp/serve.ts";
import { loadOwnTools } from "../own-tools.ts";
import { prepare } from "../prepare.ts";
import { lazyModel } from "../select-model.ts";
import { firstLine } from "../chat/timeline.ts";

interface ListFlags extends PolicyFlags {
  readonly json?: boolean;
}

const json = toggle("as JSON");
const serverName = { brief: "the server", parse: String, placeholder: "SERVER" } as const;

const serve = buildCommand({
  docs: { brief: "serve the governed tools as an MCP server, over stdio or --http PORT" },
  parameters: {
    flags: {
      ...toolFlags,
      http: {
        kind: "parsed",
        parse: readPort,
        optional: true,
        brief: "serve /mcp on 127.0.0.1 at this port instead of stdio",
        placeholder: "PORT",
      },
    },
  },
  func: (flags: ServeFlags) => runCommand(async () => (await import("../mcp/serve.ts")).serve(flags)),
});

const list = buildCommand({
  docs: { brief: "list the configured servers and their state; waits until each has answered or failed" },
  parameters: { flags: { ...policyFlags, json } },
  func: (flags: ListFlags) => runCommand(() => listServers(flags)),
});

const tools = buildCommand({
  docs: { brief: "list a server's tools as it describes them; --accept trusts changed ones" },
  parameters: {
    flags: {
      ...policyFlags,
      json,
      accept: toggle("I have looked: offer them as they are now"),
    },
    positional: { kind: "tuple", parameters: [serverName] },
  },
  func: (flags: ListFlags & { readonly accept?: boolean }, server: string) =>
    runCommand(() => showTools(flags, server)),
});

const call = buildCommand({
  docs: { brief: "call a server's tool, through the gate: SERVER/TOOL or SERVER TOOL, then its arguments" },
  parameters: {
    flags: { ...policyFlags, json },
    positional: {
      kind: "tuple",
      parameters: [
        { brief: "the server and its tool", parse: String, placeholder: "SERVER/TOOL" },
        { brief: "its arguments: JSON, '-' for stdin, @FILE", parse: String, placeholder: "JSON", optional: true },
        {
          brief: "the arguments, where the tool is a word of its own",
          parse: String,
          placeholder: "JSON",
          optional: true,
        },
      ],
    },
  },
  func: (flags: ListFlags, first: string, second?: string, third?: string) =>
    runCommand(() => {
      if (first.includes("/") && third === undefined) return callTool(flags, first, second);
      if (second === undefined) throw new UsageError(`name a tool of ${first}: SERVER/TOOL`);
      return callTool(flags, `${first}/${second}`, third);
    }),
});

const login = buildCommand({
  docs: { brief: "log in to an HTTP server that asks for it, in a browser" },
  parameters: {
    flags: {
      ...folderFlags,
      noBrowser: toggle("only print the address of the login page"),
    },
    positional: { kind: "tuple", parameters: [serverName] },
  },
  func: (flags: LoginFlags, server: string) =>
    runCommand(async () => (await import("../mcp/login.ts")).logIn(flags, server)),
});

const logout = buildCommand({
  docs: { brief: "forget a server's login" },
  parameters: { flags: folderFlags, positional: { kind: "tuple", parameters: [serverName] } },
  func: (flags: FolderFlags, server: string) =>
    runCommand(async () => (await import("../mcp/login.ts")).logOut(flags, server)),
});

const doctor = buildCommand({
  docs: { brief: "start every configured server and say what is wrong with it" },
  parameters: { flags: { ...policyFlags, json } },
  func: (flags: ListFlags) => runCommand(async () => (await import("../mcp/doctor.ts")).examine(flags)),
});

const add = buildCommand({
  docs: {
    brief: "add a server to your settings: NAME and its command, or NAME --url ADDRESS",
    fullDescription: "For example: callgate mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
  },
  parameters: {
    flags: {
      url: { kind: "parsed", parse: String, optional: true, brief: "a server over HTTP", placeholder: "ADDRESS" },
      bearerTokenEnv: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "the variable that holds its token, with --url",
        placeholder: "NAME",
      },
      env: {
        kind: "parsed",
        parse: String,
        optional: true,
        variadic: true,
        brief: "a variable for its process",
        placeholder: "NAME=VALUE",
      },
      sandbox: toggle("its process runs inside the sandbox"),
      force: toggle("replace a server of that name"),
    },
    positional: {
      kind: "array",
      parameter: { brief: "its name, then the command and its arguments", parse: String, placeholder: "NAME COMMAND" },
    },
  },
  func: (flags: AddFlags, ...words: readonly string[]) =>
    runCommand(async () => (await import("../mcp/edit-settings.ts")).addServer(flags, words[0], words.slice(1))),
});

const remove = buildCommand({
  docs: { brief: "remove a server from your settings" },
  parameters: { flags: {}, positional: { kind: "tuple", parameters: [serverName] } },
  func: (_flags: object, server: string) =>
    runCommand(async () => (await import("../mcp/edit-settings.ts")).removeServer(server)),
});

export const command = buildRouteMap({
  routes: { serve, list, add, remove, tools, call, login, logout, doctor },
  docs: { brief: "serve the tools over MCP; add, remove and inspect MCP servers" },
});

interface WithServers {
  readonly engine: ReturnType<typeof createEngine>;
  readonly mcp: McpClients;
}

/** With all servers, or the one that `wanted` (`server/tool`, `server/`) names. */
async function withServers<Result>(
  flags: PolicyFlags,
  wanted: string | undefined,
  body: (at: WithServers) => Promise<Result>,
): Promise<Result> {
  const { cwd, config } = await prepare(flags);
  const names = Object.keys(serverTable(config, cwd));
  if (names.length === 0) throw new UsageError("no MCP server is configured ([mcpServers] in callgate.toml)");
  const server = wanted?.split("/", 1)[0];
  if (server !== undefined && !names.includes(server))
    throw new UsageError(`there is no MCP server '${server}': ${names.join(", ")}`);
  const person = await personHere();
  const engine = createEngine({
    ...(await engineOptions(config, cwd, process.env)),
    ...(person ? { approver: person } : {}),
  });
  const lazy = lazyModel(config, process.env);
  const { mcp, close } = await loadOwnTools(engine, config, cwd, {
    model: lazy.model,
    ...(person ? { person } : {}),
    ...defined({ wanted }),
    waitMs: 0, // each command below waits for what it needs
  });
  try {
    return await body({ engine, mcp: mcp! });
  } finally {
    await close();
    await lazy.close();
    await engine.close();
  }
}

/** Each server gets the time its settings give it to start (startup_timeout_ms, half a minute by default). */
async function listServers(flags: ListFlags): Promise<void> {
  const { cwd, config } = await prepare(flags);
  if (Object.keys(serverTable(config, cwd)).length === 0)
    return flags.json ? printJson([]) : print("No MCP server is configured ('callgate mcp add' adds one).");
  await withServers(flags, undefined, async ({ mcp }) => {
    const rows = await Promise.all(
      [...mcp.connections].map(async ([name, connection]) => {
        const found = await mcp.look(name).catch(() => undefined);
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

async function showTools(flags: ListFlags & { readonly accept?: boolean }, server: string): Promise<number> {
  return withServers(flags, `${server}/`, async ({ mcp }) => {
    if (!mcp.connections.has(server)) throw new UsageError(`the MCP server '${server}' is disabled or left out`);
    const found = await mcp.look(server);
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

async function callTool(flags: ListFlags, name: string, given = "{}"): Promise<number> {
  const raw = given === "-" || given.startsWith("@") ? await readInput(given) : given;
  return withServers(flags, name, async ({ engine }) => {
    const ended = await engine.run(
      { id: "call_1", name, kind: "function", arguments: raw, askedAt: Date.now() },
      new AbortController().signal,
    );
    if (flags.json) printJson(ended);
    else print(toVisible(partsToText(ended.content)));
    if (ended.ok) return exitCodes.done;
    return isRefusal(ended.code) ? exitCodes.refused : exitCodes.failed;
  });
}
