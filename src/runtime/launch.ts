/**
 * Turns what a handler says about a command into the whole launch: folder, environment, limits, and
 * what it may reach.
 */
import { constants, totalmem } from "node:os";
import { resolve } from "node:path";
import { CallError } from "../base/error.ts";
import { defined } from "../base/json.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type { ExecRequest, Launch, LimitName, Limits } from "../spec/capability.ts";
import { quietEnv, terminalEnv } from "./environment.ts";
import type { Ending } from "./process/child.ts";

const gib = 1024 ** 3;

/** The limits unless others are set: enough for builds and browsers, but too little to bring the machine down. */
export function defaultLimits(): Limits {
  const memory = totalmem();
  const memoryBytes = Math.max(gib, Math.floor(memory * 0.8));
  return { processes: 4096, memoryBytes, fileBytes: 8 * gib, openFiles: 65_536, tempBytes: 4 * gib };
}

/** Removes limits of 0, which mean no limit. */
function held(limits: Limits): Limits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== 0));
}

const exceeded: Readonly<Record<LimitName, string>> = {
  processes: "more processes and threads at once",
  memoryBytes: "more bytes of memory",
  tempBytes: "more bytes in its temp folder",
};

/** The denial for a command that a limit ended. A person's yes cannot lift a limit. */
export function limitDenial({ limit, signal, exitCode }: Ending, limits: Limits = {}): Denial | undefined {
  if (limit !== undefined)
    return {
      what: "command",
      reason: `the command was ended: it used ${exceeded[limit]} than its limit of ${limits[limit]} (command_limits)`,
      rule: `limit ${limit}`,
    };
  if (signal !== "SIGXFSZ" && exitCode !== 128 + constants.signals.SIGXFSZ) return undefined;
  const reason = `the command was ended: a file grew over the limit of ${limits.fileBytes} bytes (command_limits)`;
  return { what: "command", reason, rule: "limit fileBytes" };
}

function patient(timeoutMs: number | undefined, { patience = 1 }: Grant): number | undefined {
  return timeoutMs === undefined ? undefined : timeoutMs * patience;
}

/** A request with everything filled in that it left out. */
export function toLaunch(
  { argv, cwd, env: own, stdin, timeoutMs, limits, isolated = false }: ExecRequest,
  env: Launch["env"],
  options: Pick<Launch, "cwd" | "grant" | "limits">,
  tty?: Launch["tty"],
): Launch {
  if (argv.length === 0 || argv[0] === "")
    throw new CallError("invalid_input", "the command is empty", { hint: "give the program and its arguments" });
  return {
    argv,
    cwd: resolve(options.cwd, cwd ?? ""),
    env: { ...env, ...(tty ? terminalEnv : quietEnv), ...own },
    limits: held({
      ...defaultLimits(),
      ...options.limits,
      ...limits,
      ...defined({ timeoutMs: patient(timeoutMs, options.grant) }),
    }),
    grant: isolated ? isolatedGrant(options.grant) : options.grant,
    ...defined({ stdin, tty }),
  };
}

/** Narrower than any grant, while everything that was hidden or denied stays so. */
function isolatedGrant({ mask, denied, patience }: Grant): Grant {
  const walls = { policy: "read-only", confined: true, write: [], protect: [], network: "off" } as const;
  return { ...walls, mask, ...defined({ denied, patience }) };
}
