/** `callgate mcp serve`: offers the tools of this folder to MCP clients until they are gone. */
import { join } from "node:path";
import { Writable } from "node:stream";
import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import type { AnyTool } from "../../index.ts";
import { createEngine } from "../../router/engine.ts";
import { engineOptions } from "../engine-options.ts";
import type { ToolFlags } from "../config/flags.ts";
import { say } from "../io.ts";
import type { ToolSpec } from "../../spec/model.ts";
import { chooseProfile, offerToModel } from "../offered-tools.ts";
import { loadOwnTools } from "../own-tools.ts";
import { prepare } from "../prepare.ts";
import { version } from "../version.ts";
import { open, stat } from "node:fs/promises";
import { existsSync, readdirSync, statSync } from "node:fs";
import type { ResourceFolder } from "../../mcp/index.ts";
import { listSessions } from "../../store/index.ts";

export interface ServeFlags extends ToolFlags {
  readonly http?: number;
}

/** Serves until the client is gone, or until somebody ends the process. */
export async function serve(flags: ServeFlags): Promise<void> {
  const stdio = flags.http === undefined ? reserveStdout() : undefined;
  const { cwd, config } = await prepare(flags);
  const { createElicitingApprover, createServedResources, serveMcp } = await import("../../mcp/index.ts");
  const approver = createElicitingApprover();
  const state = stateDir(process.env);
  const spillDir = join(state, "outputs", `mcp-${process.pid}-${Date.now()}`);
  const engine = createEngine({ ...(await engineOptions(config, cwd, process.env, { spillDir })), approver });
  const own = await loadOwnTools(engine, config, cwd, { elicit: approver.elicit });
  const offer = offerToModel(engine, await chooseProfile(config, config.model), config, "custom");
  const shows = (tool: AnyTool) =>
    tool.origin !== undefined || offer().some((spec) => spec.name === tool.name && isRunHere(spec));
  const server = await serveMcp({
    engine,
    approver,
    shows,
    // Each client sees the outputs kept for its own calls.
    resources: (conversation) => ({
      ...createServedResources({ folders: resourceFolders(state, engine.workspace, conversation.spillDir), readText }),
      // A call whose output was too long has left a new file.
      onChange: (listener) =>
        conversation.on((event) => {
          if (event.type === "call.ended" && event.call.cut?.file !== undefined) listener();
        }),
    }),
    version,
    tell: say,
    ...defined({ stdio, port: flags.http, token: process.env["CALLGATE_MCP_TOKEN"] }),
  });
  await Promise.race([server.closed, stopAsked()]);
  await server.close();
  await own.close();
  await engine.close();
}

/** Whether it runs here: a provider's own tool without a function form does not. */
function isRunHere(spec: ToolSpec): boolean {
  return spec.kind !== "native" || spec.asFunction !== undefined;
}

function stopAsked(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => resolve());
  });
}

/** stdout belongs to the protocol alone, so what a user's tool prints there goes to stderr. */
export function reserveStdout() {
  const write = process.stdout.write.bind(process.stdout);
  const output = new Writable({ write: (chunk: Buffer, _encoding, done) => void write(chunk, done) });
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return { input: process.stdin, output };
}

/** What an MCP client of this workspace may read: its sessions' journals, and outputs that were too long for an answer. */
function resourceFolders(stateDir: string, workspace: string, spillDir: string): readonly ResourceFolder[] {
  return [
    {
      kind: "sessions",
      title: "session journal",
      mediaType: "application/x-ndjson",
      root: join(stateDir, "sessions"),
      files: () =>
        listSessions(stateDir)
          .filter(({ cwd }) => cwd === workspace)
          .map(({ id, path, title }) => ({ name: id, path, ...(title === "" ? {} : { title }) })),
    },
    {
      kind: "outputs",
      title: "whole output of a call",
      mediaType: "text/plain",
      root: spillDir,
      files: () =>
        existsSync(spillDir)
          ? readdirSync(spillDir).map((name) => {
              const path = join(spillDir, name);
              return { name, path, size: statSync(path).size };
            })
          : [],
    },
  ];
}

/** The beginning of a file, or all of it if it is short enough. */
async function readText(path: string, maxBytes: number): Promise<{ text: string; cut: boolean }> {
  const { size } = await stat(path);
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(Math.min(size, maxBytes));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return { text: buffer.toString("utf8", 0, bytesRead), cut: size > maxBytes };
  } finally {
    await file.close();
  }
}
