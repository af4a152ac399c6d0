import { join } from "node:path";
import { defined } from "../base/json.ts";
import { stateDir } from "../base/paths.ts";
import { commandEnvironment } from "./environment.ts";
import { createLoginEnv } from "./process/login-env.ts";
import type { LoginEnv } from "./process/login-env.ts";
import type { Spawner } from "./process/child.ts";
import { createLauncherSpawner } from "./process/launcher.ts";
import { launcherPath } from "./process/launcher-path.ts";
import { createSlots, type Slots } from "./process/slots.ts";
import { createPlainSpawner } from "./process/plain.ts";
import { createTerminalHost } from "./terminal.ts";
import type { TerminalHost } from "./terminal.ts";

/** What the commands of a session share: one launcher, one login environment, and the terminals that outlive a call. */
export interface Processes {
  readonly spawner: Spawner;
  readonly loginEnv: LoginEnv;
  readonly terminals: TerminalHost;
  /** How many commands may run, shared fairly between conversations. */
  readonly slots: Slots;
  /** Ends every command and terminal that is still there. */
  close(): Promise<void>;
}

export interface ProcessesOptions {
  /**
   * `off`, or the path of the launcher. Left out: CALLGATE_LAUNCHER, otherwise the one that was built,
   * otherwise none.
   */
  readonly launcher?: string;
  /** False: login files are not read. */
  readonly loginFiles?: boolean;
  /** Called with what a person should know, for example that login files are slow. */
  readonly onWarning?: (text: string) => void;
  readonly maxTerminals?: number;
  /** How many commands run at once. */
  readonly maxCommands?: number;
  readonly env?: NodeJS.ProcessEnv;
}

export function createProcesses(options: ProcessesOptions = {}): Processes {
  const path = options.launcher ?? launcherPath(options.env);
  const spawner = path === undefined || path === "off" ? createPlainSpawner() : createLauncherSpawner({ path });
  const terminals = createTerminalHost(
    options.maxTerminals === undefined ? {} : { maxTerminals: options.maxTerminals },
  );
  return {
    spawner,
    loginEnv: createLoginEnv({
      ...defined({ enabled: options.loginFiles, onWarning: options.onWarning }),
      kept: {
        file: join(stateDir(options.env ?? process.env), "login-env.json"),
        // What the policy keeps from commands must not be stored in a file either.
        isSafe: (login) =>
          Object.keys(commandEnvironment(login, { inherit: "all" })).length === Object.keys(login).length,
      },
    }),
    terminals,
    slots: createSlots(options.maxCommands),
    async close() {
      await terminals.closeAll();
      await spawner.close();
    },
  };
}
