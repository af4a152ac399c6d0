/**
 * The command's table of contents: one line per command, and the file that is loaded when it is
 * asked for. Nothing here may import a stage, so that `callgate --version` stays as cheap as node.
 */
import type { Command, CommandContext, RouteMap } from "@stricli/core";

export interface Route {
  readonly brief: string;
  readonly load: () => Promise<{ readonly command: Command<CommandContext> | RouteMap<CommandContext> }>;
}

export const routes: Readonly<Record<string, Route>> = {
  chat: { brief: "an interactive session in this folder", load: () => import("./commands/chat.ts") },
  exec: { brief: "one headless turn: a prompt in, the answer out", load: () => import("./commands/exec.ts") },
  demo: {
    brief: "a small repair job, end to end, on the built-in offline model",
    load: () => import("./commands/demo.ts"),
  },
  tools: { brief: "the tools as a model would get them; lint checks them", load: () => import("./commands/tools.ts") },
  call: { brief: "one call of one tool, through the whole line", load: () => import("./commands/call.ts") },
  mcp: {
    brief: "be an MCP server; add, remove and look at the configured ones",
    load: () => import("./commands/mcp.ts"),
  },
  gateway: {
    brief: "any agent, any model: a local server that speaks every API",
    load: () => import("./commands/gateway.ts"),
  },
  acp: { brief: "an agent for editors: Zed, JetBrains, Neovim", load: () => import("./commands/acp.ts") },
  serve: {
    brief: "sessions behind an HTTP API, with a page to watch them and answer their questions",
    load: () => import("./commands/serve.ts"),
  },
  init: { brief: "choose a model, write the settings, try them", load: () => import("./commands/init.ts") },
  sessions: { brief: "the recorded sessions, newest first", load: () => import("./commands/sessions.ts") },
  resume: { brief: "go on with a recorded session", load: () => import("./commands/resume.ts") },
  fork: { brief: "go on with a copy of a recorded session", load: () => import("./commands/fork.ts") },
  show: { brief: "a recorded session, readable", load: () => import("./commands/show.ts") },
  replay: { brief: "a recorded session again, shown or run", load: () => import("./commands/replay.ts") },
  export: { brief: "a recorded session as a document", load: () => import("./commands/export.ts") },
  decode: { brief: "read a recorded answer of a model", load: () => import("./commands/decode.ts") },
  dialects: { brief: "the text dialects, and which one a model speaks", load: () => import("./commands/dialects.ts") },
  model: { brief: "models of your own, known by their chat templates", load: () => import("./commands/model.ts") },
  schema: { brief: "a JSON Schema as a provider takes it", load: () => import("./commands/schema.ts") },
  patch: { brief: "apply a patch to this folder: all files or none", load: () => import("./commands/patch.ts") },
  undo: {
    brief: "take back what the last turn's file tools or the last kept command did",
    load: () => import("./commands/undo.ts"),
  },
  policy: {
    brief: "what the rules say: check a command, test, suggest and replay rules",
    load: () => import("./commands/policy.ts"),
  },
  trust: { brief: "show what a project brings and trust it", load: () => import("./commands/trust.ts") },
  audit: { brief: "check the log of decisions", load: () => import("./commands/audit.ts") },
  sandbox: {
    brief: "run a command confined, and say what confined it",
    load: () => import("./commands/sandbox.ts"),
  },
  doctor: { brief: "what works here and what does not, one line each", load: () => import("./commands/doctor.ts") },
};

/** What people type instead; help shows the command itself. */
export const synonyms: ReadonlyMap<string, string> = new Map([["dialect", "dialects"]]);
