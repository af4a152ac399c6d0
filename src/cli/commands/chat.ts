import { buildCommand } from "@stricli/core";
import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { toVisibleLine } from "../../gate/show.ts";
import { assemble, type Assembled } from "../assemble.ts";
import type { Config } from "../config/config.ts";
import { sessionFlags, type SessionFlags, type ToolFlags, toggle } from "../config/flags.ts";
import { runCommand, say, UsageError } from "../io.ts";
import { prepare } from "../prepare.ts";
import { setSessionFlags } from "../v8-flags.ts";
import { openPromptHistory } from "../chat/prompt-history.ts";
import { createModes, type Mode } from "../chat/modes.ts";
import { describeGuidance, describeServers, describeSession } from "../chat/describe-session.ts";
import { listSessions } from "../../store/index.ts";
import { listModelsOf } from "../select-model.ts";
import { answersTools } from "../tool-questions.ts";
import type { ChatApp } from "../tui/app.ts";
import type { Restart } from "../tui/chat-context.ts";

interface ChatFlags extends SessionFlags {
  readonly resume?: string;
  readonly fork?: boolean;
  readonly plain?: boolean;
}

export const command = buildCommand({
  docs: { brief: "start an interactive session in this folder (the same as callgate alone)" },
  parameters: {
    flags: {
      ...sessionFlags,
      resume: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "continue this session (an id, its beginning, or 'last')",
        placeholder: "ID",
      },
      fork: toggle("with --resume: a copy under a new id"),
      plain: toggle("lines only, no drawing: for dumb terminals and screen readers"),
    },
  },
  func: (flags: ChatFlags) => runCommand(() => chat(flags)),
});

export async function chat(flags: ChatFlags): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new UsageError("an interactive session needs a terminal; 'callgate exec PROMPT' needs none");
  const { cwd, config } = await prepare(flags);
  const isPlain = flags.plain || process.env["TERM"] === "dumb";
  let part: Part = {
    config,
    flags,
    cwd,
    isPlain,
    showHistory: true,
    ...(flags.resume === undefined ? {} : { resume: flags.resume, fork: flags.fork }),
  };
  for (let next: Part | undefined = part; next !== undefined;) {
    try {
      const again = await playPart((part = next));
      next = again === undefined ? undefined : changePart(part, again);
    } catch (error) {
      // The first start fails like any command. A change that cannot be made leaves things as they were.
      if (!(error instanceof UsageError) || part.before === undefined) throw error;
      next = { ...part.before, notice: error.message };
    }
  }
}

/** A session between two changes of its settings: the screen stays, and model and engine are made again. */
interface Part {
  readonly config: Config;
  /** What was named at the start or since then. It takes precedence over what a resumed session had. */
  readonly flags: ToolFlags;
  readonly cwd: string;
  readonly isPlain: boolean;
  readonly resume?: string;
  readonly fork?: boolean;
  /** The resumed history is not on the screen yet. */
  readonly showHistory: boolean;
  /** The policy that was chosen in the meantime. No change of model or session may loosen it. */
  readonly mode?: Mode;
  readonly notice?: string;
  /** The part to return to if this one cannot begin. */
  readonly before?: Part;
}

function changePart(part: Part, { resume, id, isNew, config, mode }: Again): Part {
  const { notice: _notice, before: _before, fork: _fork, resume: _resume, ...base } = part;
  const isOther = resume !== undefined && resume !== id;
  return {
    ...base,
    config: config ?? base.config,
    // Another session has its own model unless one is named. This one continues with what was just chosen.
    flags:
      isOther && config === undefined
        ? {}
        : defined({ ...base.flags, ...(config === undefined ? {} : namedBy(config)) }),
    ...(isNew ? {} : { resume: resume ?? id }),
    showHistory: isOther,
    mode,
    before: { ...base, mode, resume: id, showHistory: false },
  };
}

/** The model that settings name, as flags would. */
function namedBy({ model = "offline", provider, base_url: baseUrl, wire }: Config): ToolFlags {
  return defined({ model, provider, baseUrl, wire });
}

interface Again extends Restart {
  /** The session that asked for it. */
  readonly id: string;
  readonly mode: Mode;
}

async function playPart(part: Part): Promise<Again | undefined> {
  const { config, cwd, resume, fork } = part;
  const app = await startApp(part.isPlain);
  const assembled = await assemble({
    config,
    cwd,
    env: process.env,
    approver: answersTools(app.person),
    servers: { person: app.person, warn: (message) => app.note(`! ${toVisibleLine(message)}`), waitMs: 0 },
    flags: part.flags,
    ...defined({ resume, fork }),
  });
  const { session, engine, model, close, mcp } = assembled;
  const modes = createModes(engine, assembled.config, part.mode);
  setSessionFlags(session);
  try {
    const again = await app.run({
      session,
      engine,
      config: assembled.config,
      wire: model.wire,
      model: model.model.name,
      modes,
      prompts: assembled.prompts,
      cwd,
      greeting: greet(assembled, part),
      typed: openPromptHistory(stateDir(process.env)),
      showHistory: part.showHistory,
      describe: () => describeSession(assembled, modes, cwd),
      servers: () => describeServers(mcp),
      sessions: () => listSessions(stateDir(process.env)),
      listModels: () => listModelsOf(assembled.config, process.env),
      runCommand: (args) => runSelf(args, cwd),
    });
    if (again === undefined && session.history.length > 0)
      say(`callgate --resume ${session.id} goes on with this session`);
    return again === undefined ? undefined : { ...again, id: session.id, mode: modes.now };
  } finally {
    await close();
  }
}

async function startApp(isPlain: boolean): Promise<ChatApp> {
  if (!isPlain) {
    const { createChatApp } = await import("../tui/app.ts");
    return createChatApp(process.env["NO_COLOR"] === undefined || process.env["NO_COLOR"] === "");
  }
  const [{ createTerminalApprover }, { runPlainChat }] = await Promise.all([
    import("../policy/approve.ts"),
    import("../chat/plain-chat.ts"),
  ]);
  const person = createTerminalApprover();
  return { person, note: say, run: (context) => runPlainChat(context, person) };
}

function greet({ model, session, guidance }: Assembled, { cwd, notice, before }: Part): string {
  if (notice !== undefined) return `! ${notice}`;
  const reads = guidance.files.length === 0 ? [] : [`reads ${guidance.files.map(describeGuidance).join(", ")}`];
  if (before !== undefined)
    return [`session ${session.id}, model ${model.model.name} over ${model.wire}`, ...reads].join("\n");
  const lines = [`callgate in ${cwd}`, ...reads];
  if (model.provider === "offline")
    lines.push(
      "No model is configured: this is the built-in offline planner. It follows plain requests such as 'read README.md' or 'run ls'.",
      "'callgate init' sets up a real model.",
    );
  if (session.history.length > 0) lines.push(`going on with session ${session.id} (${session.history.length} items)`);
  for (const id of session.interrupted) lines.push(`! the call ${id} was cut off last time and was not run again`);
  return lines.join("\n");
}

/** Runs another of our commands as its own process, and shows what it prints. */
async function runSelf(args: readonly string[], cwd: string): Promise<string> {
  const { execFile } = await import("node:child_process");
  return new Promise((resolve) =>
    execFile(process.execPath, [process.argv[1]!, ...args], { cwd, maxBuffer: 16 * 1024 * 1024 }, (_error, out, err) =>
      resolve(`${out}${err}`.trim()),
    ),
  );
}
