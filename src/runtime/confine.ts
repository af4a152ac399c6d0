/** From a command and a grant to what the process layer starts: inside the sandbox, or plain where the grant says so. */
import { resolve } from "node:path";
import { CallError } from "../base/error.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type { ExecRequest } from "../spec/capability.ts";
import { checkCwd } from "./process/child.ts";
import type { Launch, Spawner } from "./process/child.ts";
import { quietEnv, terminalEnv } from "./process/quiet-env.ts";
import type { ConfinedCommand, Ending, Sandbox } from "./sandbox/backend.ts";

/** What the launcher's keeper is called inside a sandbox: its own program, open at descriptor 9. */
const keeperArgv = ["/proc/self/fd/9", "keeper"] as const;

/** Where and under what a command is to run. */
export interface Setting {
  readonly spawner: Spawner;
  readonly grant: Grant;
  readonly sandbox: Sandbox | undefined;
  readonly cwd: string;
  /** The environment below the quiet settings; what the request itself sets lies above them. */
  readonly env: Readonly<Record<string, string>>;
  readonly tty: boolean;
  readonly callId: string | undefined;
}

export interface Ready {
  readonly launch: Pick<Launch, "argv" | "cwd" | "env" | "fds" | "uid" | "gid" | "shelter" | "landlock">;
  readonly sandbox: string;
  /** Once the command and everything it started is gone; a second call does nothing. */
  finish(ending: Ending): Promise<Denial | undefined>;
}

/** Throws a CallError where the grant asks for a sandbox and there is none, a StartError for a folder that is not there. */
export async function confine(request: Pick<ExecRequest, "argv" | "cwd" | "env">, setting: Setting): Promise<Ready> {
  const { grant, sandbox, tty, callId } = setting;
  const { argv } = request;
  if (argv.length === 0 || argv[0] === "")
    throw new CallError("invalid_input", "the command is empty", { hint: "give the program and its arguments" });
  const cwd = resolve(setting.cwd, request.cwd ?? "");
  const env = { ...setting.env, ...(tty ? terminalEnv : quietEnv), ...request.env };
  if (!sandbox && grant.confined)
    throw new CallError("no_sandbox", "commands must run in a sandbox here, and there is none", {
      hint: "run `callgate doctor`",
    });
  checkCwd(cwd);
  if (!sandbox) return { launch: { argv, cwd, env }, sandbox: "none", finish: async () => undefined };
  // The launcher starts its keeper in the sandbox, perhaps ahead of time, and the keeper starts the command.
  const keeps =
    grant.confined && setting.spawner.name === "launcher" && (await sandbox.confinement()).name.startsWith("bwrap");
  const place = { cwd, env, grant, ...(callId === undefined ? {} : { callId }) };
  const confined = await sandbox.confine({ ...place, argv: keeps ? keeperArgv : argv, tty: tty && !keeps });
  return {
    launch: toLaunch(confined, keeps, { argv, cwd, env }),
    sandbox: confined.sandbox,
    finish: once(confined, argv),
  };
}

function toLaunch(
  confined: ConfinedCommand,
  keeps: boolean,
  { argv, cwd, env }: Pick<Launch, "argv" | "cwd" | "env">,
): Ready["launch"] {
  const { fds, uid, gid } = confined;
  const owner = {
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    ...(fds === undefined ? {} : { fds }),
  };
  if (keeps) {
    const shelter = { argv: confined.argv, cwd: confined.cwd, reusable: confined.warm, ...owner };
    return { argv, cwd, env: { ...env, ...confined.env }, shelter };
  }
  const landlock = confined.landlock ? { landlock: confined.landlock } : {};
  return { argv: confined.argv, cwd: confined.cwd, env: { ...confined.env }, ...owner, ...landlock };
}

function once(confined: ConfinedCommand, argv: readonly string[]): Ready["finish"] {
  let done = false;
  return async (ending) => {
    if (done) return undefined;
    done = true;
    return confined.cleanup({ exitCode: ending.exitCode, signal: ending.signal, argv });
  };
}
