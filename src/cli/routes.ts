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
  chat: { brief: "start an interactive session in this folder", load: () => import("./commands/chat.ts") },
  exec: { brief: "run one headless turn: a prompt in, the answer out", load: () => import("./commands/exec.ts") },
  demo: {
    brief: "run a small repair job, end to end, on the built-in offline model",
    load: () => import("./commands/demo.ts"),
  },
  tools: { brief: "list the tools as a model gets them; lint checks them", load: () => import("./commands/tools.ts") },
  call: { brief: "call one tool, through every stage of the line", load: () => import("./commands/call.ts") },
  mcp: {
    brief: "serve the tools over MCP; add, remove and inspect MCP servers",
    load: () => import("./commands/mcp.ts"),
  },
  gateway: {
    brief: "run any agent on any model: a local server that speaks every API",
    load: () => import("./commands/gateway.ts"),
  },
  acp: { brief: "run as an agent for editors: Zed, JetBrains, Neovim", load: () => import("./commands/acp.ts") },
  serve: {
    brief: "serve sessions over HTTP, with a page to watch them and answer their questions",
    load: () => import("./commands/serve.ts"),
  },
  init: { brief: "choose a model, write the settings, try them", load: () => import("./commands/init.ts") },
  sessions: { brief: "list the recorded sessions, newest first", load: () => import("./commands/sessions.ts") },
  resume: { brief: "continue a recorded session", load: () => import("./commands/resume.ts") },
  fork: { brief: "continue a copy of a recorded session", load: () => import("./commands/fork.ts") },
  show: { brief: "show a recorded session", load: () => import("./commands/show.ts") },
  replay: {
    brief: "play a recorded session again, or run it against today's rules",
    load: () => import("./commands/replay.ts"),
  },
  export: { brief: "write a recorded session as Markdown, HTML or JSON", load: () => import("./commands/export.ts") },
  decode: { brief: "decode a recorded answer of a model", load: () => import("./commands/decode.ts") },
  dialects: {
    brief: "list the text dialects, or find out which one a model speaks",
    load: () => import("./commands/dialects.ts"),
  },
  model: { brief: "manage your own models, by their chat templates", load: () => import("./commands/model.ts") },
  schema: { brief: "convert a JSON Schema to what a provider accepts", load: () => import("./commands/schema.ts") },
  patch: { brief: "apply a patch to this folder: all files or none", load: () => import("./commands/patch.ts") },
  undo: {
    brief: "undo what the last turn's file tools or the last kept command did",
    load: () => import("./commands/undo.ts"),
  },
  policy: {
    brief: "ask what the rules decide; test, suggest and replay rules",
    load: () => import("./commands/policy.ts"),
  },
  trust: { brief: "show what a project brings and trust it", load: () => import("./commands/trust.ts") },
  audit: { brief: "check the log of decisions", load: () => import("./commands/audit.ts") },
  sandbox: {
    brief: "run a command confined, and say what confined it",
    load: () => import("./commands/sandbox.ts"),
  },
  doctor: { brief: "show what works on this machine and what does not", load: () => import("./commands/doctor.ts") },
};

/** What people type instead; help shows the command itself. */
export const synonyms: ReadonlyMap<string, string> = new Map([["dialect", "dialects"]]);
