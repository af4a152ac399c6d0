/** A session of the service, opened for one wake: the settings of the command, narrowed by what the client asked for. */
import { existsSync, realpathSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { basename, join, relative, resolve, isAbsolute } from "node:path";
import { defined, isObject, type JsonObject } from "../../base/json.ts";
import type { Telemetry } from "../../result/telemetry.ts";
import { approvalNames, sandboxNames, toSettings } from "../../gate/modes.ts";
import {
  openSessionFolder,
  Problem,
  type OpenRequest,
  type OpenSession,
  type PackStore,
  type SessionFolder,
} from "../../serve/index.ts";
import { assemble } from "../assemble.ts";
import { readPolicy } from "../engine-options.ts";
import type { Config } from "../config/config.ts";
import { isNoLooser, isNoWider, narrowLimits } from "./narrow.ts";
import { createKeptRuns, undoInSession } from "./undo-session.ts";
import { prepareWorkspace, readBase } from "./workspace.ts";

export interface SessionSource {
  readonly config: Config;
  /** The folder the service was started in. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Workspaces that the service makes are below this folder. */
  readonly workspaces: string;
  /** The tenant that started the service: its sessions work in its own folders and may write its rules. */
  readonly operator: string;
  /** Sessions may continue in another process on another machine, so they must not work in a folder of this one. */
  readonly isShared: boolean;
  /** Hosts at private addresses that bases may come from. */
  readonly baseHosts: readonly string[];
  /** Where the changes that sessions made to their files are stored, for the process that continues them. */
  readonly packs?: PackStore;
  readonly telemetry?: Telemetry;
}

export function createOpener(source: SessionSource): OpenSession {
  return async ({ stored, records, journal, approver, onEvent }) => {
    const { id, settings, tenant } = stored;
    // Each process keeps the workspaces below a folder of its own.
    const cwd = source.isShared ? join(source.workspaces, basename(stored.cwd)) : stored.cwd;
    await prepareWorkspace({
      session: id,
      cwd,
      base: readBase(settings["base"]),
      workspaces: source.workspaces,
      mayBePrivate: (host) => tenant === source.operator || source.baseHosts.includes(host),
    });
    const kept = await keepFolder(stored, cwd, { records, journal }, source);
    const { model, instructions, limits } = settings;
    const own = [source.config.instructions, instructions].filter((text) => typeof text === "string").join("\n\n");
    const runs = createKeptRuns(records);
    const assembled = await assemble({
      config: {
        ...source.config,
        // This was checked when the session was made.
        ...(defined({ model }) as Partial<Config>),
        ...policyOf(settings, source.config),
        ...(own === "" ? {} : { instructions: own }),
      },
      cwd,
      env: source.env,
      approver,
      onEvent(event) {
        runs.heard(event);
        onEvent(event);
      },
      kept: {
        id,
        journal,
        keepDiffs: true,
        records: kept?.records ?? records,
        ...(kept === undefined ? {} : { keepFolder: kept.keep }),
      },
      writesRules: tenant === source.operator,
      ...defined({ telemetry: source.telemetry }),
      limits: narrowLimits(isObject(limits) ? limits : {}, source.config),
    });
    return {
      session: assembled.session,
      close: assembled.close,
      async undo(turn) {
        const done = await undoInSession({ cwd, id, env: source.env, turns: runs.turns }, turn);
        await kept?.note();
        return done;
      },
    };
  };
}

/** Those of the built-in tools that change files: by commands in the sandbox, or through the file capability. */
const confinedTools = new Set([
  "exec_command",
  "shell",
  "shell_command",
  "local_shell",
  "apply_patch",
  "edit",
  "write",
  "str_replace_based_edit_tool",
]);

/** Undefined if the folder is the operator's own, which only the operator may set back. */
async function keepFolder(
  { id }: OpenRequest["stored"],
  cwd: string,
  request: Pick<OpenRequest, "records" | "journal">,
  { workspaces, packs }: SessionSource,
): Promise<SessionFolder | undefined> {
  const folder = realpathSync(cwd);
  // If the service has not made a folder yet, this one cannot be among its folders.
  if (!existsSync(workspaces) || !isInside(folder, realpathSync(workspaces))) return undefined;
  return openSessionFolder({
    ...request,
    session: id,
    folder,
    repository: `${folder}.states`,
    confinedTools,
    ...(packs === undefined ? {} : { packs }),
  });
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== "" && !way.startsWith("..") && !isAbsolute(way);
}

/** What the client asked for, as far as it is within what the service's settings give by now. */
function policyOf({ approval, sandbox }: JsonObject, config: Config): Partial<Config> {
  const own = readPolicy(config);
  const mode = approvalNames.find((name) => name === approval);
  const confined = sandboxNames.find((name) => name === sandbox);
  return defined({
    approval: mode !== undefined && isNoLooser(toSettings(mode).approval, own) ? mode : undefined,
    sandbox: confined !== undefined && isNoWider(toSettings(undefined, confined).sandbox, own) ? confined : undefined,
  });
}

/** What a client may ask for: less than the service's own settings allow, never more. */
export function createSettingsCheck(source: SessionSource) {
  return async (
    tenant: string,
    wanted: JsonObject,
  ): Promise<{ readonly cwd: string; readonly settings: JsonObject }> => {
    const { model, approval, sandbox, base, ...rest } = wanted;
    const isOperator = tenant === source.operator;
    const refuse = (detail: string) => {
      throw new Problem(400, "invalid", detail);
    };
    if (model !== undefined && !isOperator && model !== source.config.model)
      refuse(`model: this service offers ${source.config.model ?? "its own model"} only`);
    if (approval !== undefined) {
      if (!approvalNames.some((name) => name === approval)) refuse(`approval: one of ${approvalNames.join(", ")}`);
      if (policyOf({ approval }, source.config).approval === undefined)
        refuse(`approval: '${String(approval)}' would let more pass than this service does`);
    }
    if (sandbox !== undefined) {
      if (!sandboxNames.some((name) => name === sandbox)) refuse(`sandbox: one of ${sandboxNames.join(", ")}`);
      if (policyOf({ sandbox }, source.config).sandbox === undefined)
        refuse(`sandbox: '${String(sandbox)}' is wider than this service offers`);
    }
    const from = readBase(base);
    if (from?.kind === "folder" && source.isShared)
      refuse("base: a folder belongs to one machine; this service has several processes: use git, archive or empty");
    const own = join(source.workspaces, randomBytes(8).toString("hex"));
    const cwd =
      from?.kind === "folder"
        ? findFolder(from.path, source, isOperator)
        : from === undefined && isOperator && !source.isShared
          ? source.cwd
          : own;
    const kept = from?.kind === "folder" ? undefined : from;
    return { cwd, settings: { ...rest, ...defined({ model, approval, sandbox, base: kept && { ...kept } }) } };
  };
}

/** A folder of the operator's own, inside the one the service was started in. */
function findFolder(path: string, { cwd }: SessionSource, isOperator: boolean): string {
  const problem = new Problem(400, "invalid", "base: there is no such folder here");
  if (!isOperator) throw problem;
  try {
    const root = realpathSync(cwd);
    const real = realpathSync(resolve(root, path));
    if (real !== root && !isInside(real, root)) throw problem;
    return real;
  } catch {
    throw problem;
  }
}
