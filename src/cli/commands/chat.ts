import { buildCommand } from "@stricli/core";
import { assemble, type Assembled } from "../assemble.ts";
import type { Config } from "../config.ts";
import { sessionFlags, type SessionFlags } from "../flags.ts";
import { runCommand, UsageError } from "../io.ts";
import { prepare } from "../prepare.ts";
import type { Restart } from "../tui/app.ts";

interface ChatFlags extends SessionFlags {
  readonly resume?: string;
  readonly fork: boolean;
  readonly plain: boolean;
}

export const command = buildCommand({
  docs: { brief: "an interactive session in this folder (the same as callgate alone)" },
  parameters: {
    flags: {
      ...sessionFlags,
      resume: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "go on with this session (an id, its beginning, or 'last')",
        placeholder: "ID",
      },
      fork: { kind: "boolean", default: false, brief: "with --resume: a copy under a new id" },
      plain: {
        kind: "boolean",
        default: false,
        brief: "lines only, no drawing: for dumb terminals and screen readers",
      },
    },
  },
  func: (flags: ChatFlags) => runCommand(() => chat(flags)),
});

export async function chat(flags: ChatFlags): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new UsageError("an interactive session needs a terminal; 'callgate exec PROMPT' needs none");
  const { cwd, config } = await prepare(flags);
  const isPlain = flags.plain || process.env["TERM"] === "dumb";
  let settings: Config = config;
  let resume: { readonly resume?: string; readonly fork?: boolean } =
    flags.resume === undefined ? {} : { resume: flags.resume, fork: flags.fork };
  for (;;) {
    const again = isPlain ? await plainOnce(settings, cwd, resume) : await drawOnce(settings, cwd, resume);
    if (again === undefined) return;
    const { resume: id, ...changes } = again;
    settings = { ...settings, ...changes } as Config;
    resume = id === undefined ? {} : { resume: id };
  }
}

type Resume = { readonly resume?: string; readonly fork?: boolean };

async function drawOnce(config: Config, cwd: string, resume: Resume): Promise<Restart | undefined> {
  const { createChatApp } = await import("../tui/app.ts");
  const app = createChatApp(process.env["NO_COLOR"] === undefined);
  const assembled = await assemble({ config, cwd, env: process.env, approver: app.approver, ...resume });
  const { session, engine, model, journalPath, close } = assembled;
  try {
    return await app.run({
      session,
      engine,
      wire: model.wire,
      model: model.model.name,
      journalPath,
      cwd,
      greeting: greet(assembled, cwd),
      runCommand: runSelf,
    });
  } finally {
    await close();
  }
}

async function plainOnce(config: Config, cwd: string, resume: Resume): Promise<Restart | undefined> {
  const [{ createTerminalApprover }, { runPlainChat }] = await Promise.all([
    import("../approve.ts"),
    import("../plain-chat.ts"),
  ]);
  const assembled = await assemble({ config, cwd, env: process.env, approver: createTerminalApprover(), ...resume });
  try {
    return await runPlainChat(assembled.session, greet(assembled, cwd));
  } finally {
    await assembled.close();
  }
}

function greet({ model, session }: Assembled, cwd: string): string {
  const lines = [`callgate in ${cwd}`];
  if (model.provider === "offline")
    lines.push(
      "No model is configured: this is the built-in offline planner. It follows plain requests such as 'read README.md' or 'run ls'.",
      "'callgate init' sets up a real model.",
    );
  if (session.history.length > 0) lines.push(`going on with session ${session.id} (${session.history.length} items)`);
  for (const id of session.interrupted) lines.push(`! the call ${id} was cut off last time and was not run again`);
  return lines.join("\n");
}

/** Another command of ours, as its own process: it prints, we show. */
async function runSelf(args: readonly string[]): Promise<string> {
  const { spawnSync } = await import("node:child_process");
  const { stdout, stderr } = spawnSync(process.execPath, [process.argv[1]!, ...args], { encoding: "utf8" });
  return `${stdout}${stderr}`.trim();
}
