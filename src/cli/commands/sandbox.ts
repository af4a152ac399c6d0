import { constants } from "node:os";
import { resolve } from "node:path";
import { buildCommand } from "@stricli/core";
import { CallError } from "../../base/error.ts";
import { toBaseGrant } from "../../gate/grant.ts";
import { sandboxNames, toSettings } from "../../gate/modes.ts";
import { createPolicy } from "../../gate/options.ts";
import { defaultMask } from "../../gate/paths.ts";
import { commandEnvironment } from "../../runtime/environment.ts";
import type { StartError } from "../../runtime/process/child.ts";
import { readSandboxStatus } from "../../runtime/process/sandbox-status.ts";
import { createSandbox, startConfined } from "../../runtime/sandbox/sandbox.ts";
import type { Confined, Ending, Sandbox } from "../../runtime/sandbox/sandbox.ts";
import { defined } from "../../base/json.ts";
import type { HeldFlags } from "../effects/run-held.ts";
import type { Grant, NetworkGrant } from "../../spec/access.ts";
import type { Config } from "../config/config.ts";
import { runLaterOptions } from "../policy/run-later.ts";
import { toggle } from "../config/flags.ts";
import { prepare } from "../prepare.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";
import { visible } from "../chat/visible.ts";

interface Flags {
  readonly policy: (typeof sandboxNames)[number];
  readonly allowHost?: readonly string[];
  readonly write?: readonly string[];
  readonly network?: "on" | "off";
  readonly explain?: boolean;
  readonly held?: "keep" | "drop" | "ask";
  readonly only?: readonly string[];
  readonly json?: boolean;
  readonly backend?: string;
  readonly cwd?: string;
}

export const command = buildCommand<Flags, string[]>({
  docs: {
    brief: "run a command confined, and say what confined it",
    fullDescription:
      "Everything after -- runs as a tool's command would: same mounts, same seccomp filter, same environment. Ends with the command's own exit code, or 3 where nothing here can confine it. With --explain and no command: what would be allowed.",
  },
  parameters: {
    flags: {
      policy: { kind: "enum", values: sandboxNames, default: "workspace-write", brief: "what may be changed" },
      allowHost: {
        kind: "parsed",
        parse: String,
        variadic: true,
        optional: true,
        brief: "a host that may be reached: host, host:port, *.host",
      },
      write: {
        kind: "parsed",
        parse: String,
        variadic: true,
        optional: true,
        brief: "a folder beside this one that may be changed",
      },
      network: {
        kind: "enum",
        values: ["on", "off"],
        optional: true,
        brief: "the whole network, or none of it (the default)",
      },
      explain: toggle("say what the command may do"),
      held: {
        kind: "enum",
        values: ["keep", "drop", "ask"],
        optional: true,
        brief: "hold back what it writes, list it, and then keep it, drop it or ask",
      },
      only: {
        kind: "parsed",
        parse: String,
        variadic: true,
        optional: true,
        brief: "with --held: keep only what matches this pattern",
      },
      json: toggle("the explanation, or with --held what was done, as JSON"),
      backend: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "use only this sandbox (callgate doctor lists them)",
        placeholder: "NAME",
      },
      cwd: { kind: "parsed", parse: String, optional: true, brief: "the folder, if not this one", placeholder: "DIR" },
    },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "CMD", brief: "the command and its arguments, after --" },
    },
  },
  func: (flags: Flags, ...argv: string[]) =>
    runCommand(async () => {
      if (flags.only !== undefined && flags.held === undefined)
        throw new UsageError("--only says what is kept of a held run: it goes with --held keep or --held ask");
      if (argv.length === 0 && !flags.explain) throw new UsageError("give a command: callgate sandbox -- CMD …");
      const { cwd, config } = await prepare(defined({ cwd: flags.cwd }));
      const grant = toGrant(flags, cwd, config);
      const sandbox = createSandbox(flags.backend === undefined ? {} : { only: flags.backend });
      try {
        if (flags.explain)
          await explain(sandbox, grant, { json: flags.json === true, asideFromOutput: argv.length > 0 });
        if (argv.length === 0) return exitCodes.done;
        return flags.held === undefined
          ? await run(sandbox, argv, { grant, cwd })
          : await hold(sandbox, argv, { grant, cwd }, { ...flags, held: flags.held });
      } catch (error) {
        throw toUsageError(error);
      } finally {
        await sandbox.close();
      }
    }),
});

function toGrant(flags: Flags, cwd: string, config: Config): Grant {
  const network: NetworkGrant = flags.allowHost ?? flags.network ?? "off";
  const settings = toSettings("never", flags.policy);
  const policy = createPolicy({
    settings,
    workspace: cwd,
    extraWritableRoots: (flags.write ?? []).map((path) => resolve(path)),
    network,
    ...runLaterOptions(config, cwd, process.env),
    mask: [...defaultMask(process.env["HOME"] ?? "/"), ...(config.masked_paths ?? [])],
    confinement: { name: "asked for", available: true },
  });
  return toBaseGrant(policy);
}

async function explain(
  sandbox: Sandbox,
  grant: Grant,
  how: { readonly json: boolean; readonly asideFromOutput: boolean },
): Promise<void> {
  const lines = await sandbox.explain(grant);
  if (how.json) printJson({ sandbox: (await sandbox.confinement()).name, grant, explanation: lines });
  else for (const line of lines) (how.asideFromOutput ? say : print)(line);
}

async function run(
  sandbox: Sandbox,
  argv: readonly string[],
  { grant, cwd }: { readonly grant: Grant; readonly cwd: string },
): Promise<number> {
  const { confined, ending, denied } = await tryTwice(sandbox, argv, { grant, cwd });
  const all = denied === undefined ? [] : [denied, ...(denied.more ?? [])];
  for (const { reason, inferred } of all)
    say(visible(`callgate: ${inferred ? "probably refused" : "refused"} by ${confined.sandbox}: ${reason}`));
  return ending.exitCode ?? exitCodes.failed;
}

/**
 * Something that a sandbox was to hide may disappear while it is built. Then it is built again, once.
 * Its failure is not the command's.
 */
async function tryTwice(
  sandbox: Sandbox,
  argv: readonly string[],
  at: { readonly grant: Grant; readonly cwd: string },
) {
  for (let attempt = 1; ; attempt++) {
    const confined = await confine(sandbox, argv, at);
    const { failure, ...ending } = await finish(confined);
    const denied = await confined.cleanup(ending);
    if (failure === undefined || failure.step === "exec") return { confined, ending, denied };
    if (attempt === 2) throw new UsageError(`the sandbox could not be built: ${failure.message}`, exitCodes.refused);
  }
}

async function hold(
  sandbox: Sandbox,
  argv: readonly string[],
  { grant, cwd }: { readonly grant: Grant; readonly cwd: string },
  { held, only, json }: Flags & Pick<HeldFlags, "held">,
): Promise<number> {
  const { runHeld } = await import("../effects/run-held.ts");
  const launch = { argv, cwd, env: commandEnvironment(process.env), grant: { ...grant, writes: "held" as const } };
  return runHeld(sandbox, launch, { held, json: json === true, ...defined({ only }) });
}

function confine(
  sandbox: Sandbox,
  argv: readonly string[],
  at: { readonly grant: Grant; readonly cwd: string },
): Promise<Confined> {
  // They are absent if the output is not a terminal, whatever the types say.
  const { columns, rows } = { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  const tty = process.stdin.isTTY ? { tty: { columns, rows } } : {};
  return sandbox.confine({ ...at, argv, env: commandEnvironment(process.env), ...tty });
}

/** Nothing ran: one line, and an exit code that a script can recognise. */
function toUsageError(error: unknown): unknown {
  if (!CallError.is(error)) return error;
  const codes: Readonly<Record<string, number>> = { no_sandbox: exitCodes.refused, failed: noSuchCommand };
  return new UsageError(error.message, codes[error.code] ?? exitCodes.usage);
}

/** The exit code that shells use as well. */
const noSuchCommand = 127;

/** Runs it with our own streams, so that pipes and terminals work as if there were no sandbox. */
function finish(confined: Confined): Promise<Ending & { readonly failure?: StartError }> {
  const child = startConfined(confined, { stdio: "inherit" });
  const status = readSandboxStatus(child, confined);
  const pass = (signal: NodeJS.Signals) => void child.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, pass);
  return new Promise((done, fail) => {
    const end = (exitCode: number | null, signal: string | null) => {
      for (const name of signals) process.off(name, pass);
      const failure = status.end(exitCode);
      done({ exitCode: exitCode ?? 128 + signalNumber(signal), signal, ...defined({ failure }) });
    };
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === undefined) return fail(error);
      say(visible(`callgate: ${confined.argv[0]}: ${error.code === "ENOENT" ? "no such command" : error.message}`));
      end(error.code === "ENOENT" ? noSuchCommand : 126, null);
    });
    child.once("close", end);
  });
}

function signalNumber(name: string | null): number {
  return name === null ? 0 : (constants.signals[name as NodeJS.Signals] ?? 0);
}
