/** From a command and a grant to what the process layer starts: inside the sandbox, or plain where the grant says so. */
import { resolve } from "node:path";
import { CallError } from "../base/error.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type { ExecRequest } from "../spec/capability.ts";
import { checkCwd } from "./process/child.ts";
import type { Launch, Spawner } from "./process/child.ts";
import { quietEnv, terminalEnv } from "./process/quiet-env.ts";
import type { ConfinedCommand, ConfineRequest, Ending, Sandbox } from "./sandbox/backend.ts";

/** Where and under what a command is to run. */
export interface Setting {
  readonly spawner: Spawner;
  readonly grant: Grant;
  readonly sandbox: Sandbox | undefined;
  readonly cwd: string;
  /** The environment below the quiet settings; what the request itself sets lies above them. */
  readonly env: Readonly<Record<string, string>>;
  readonly tty: boolean;
  readonly onRequest: ConfineRequest["onRequest"];
}

export interface Ready {
  readonly launch: Pick<Launch, "argv" | "cwd" | "env" | "fds" | "uid" | "gid" | "shelter" | "landlock">;
  readonly sandbox: string;
  /** Once the command and everything it started is gone; a second call does nothing. */
  finish(ending: Ending): Promise<Denial | undefined>;
}

/** Throws a CallError where the grant asks for a sandbox and there is none, a StartError for a folder that is not there. */
export async function confine(request: Pick<ExecRequest, "argv" | "cwd" | "env">, setting: Setting): Promise<Ready> {
  const { grant, sandbox, tty, onRequest } = setting;
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
  // The launcher makes sandboxes ahead, and opens the terminal inside.
  const apart = setting.spawner.name === "launcher";
  const confined = await sandbox.confine({
    argv,
    cwd,
    env,
    grant,
    apart,
    tty: tty && !apart,
    ...(onRequest === undefined ? {} : { onRequest }),
  });
  return { launch: toLaunch(confined), sandbox: confined.sandbox, finish: once(confined) };
}

function toLaunch({ argv, cwd, env, fds, uid, gid, landlock, shelter, warm }: ConfinedCommand): Ready["launch"] {
  const around = {
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    ...(fds === undefined ? {} : { fds }),
  };
  return shelter === undefined
    ? { argv, cwd, env, ...around, ...(landlock ? { landlock } : {}) }
    : { argv, cwd, env, shelter: { argv: shelter, cwd: "/", reusable: warm, ...around } };
}

function once(confined: ConfinedCommand): Ready["finish"] {
  let done = false;
  return async ({ exitCode, signal }) => {
    if (done) return undefined;
    done = true;
    return confined.cleanup({ exitCode, signal });
  };
}
