import { buildCommand, buildRouteMap } from "@stricli/core";
import { join, resolve } from "node:path";
import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { isLoopback } from "../../http/server.ts";
import { createTelemetry } from "../../result/telemetry.ts";
import { createService, issueToken, startServing, type Service } from "../../serve/index.ts";
import { findPage } from "../../store/recording-page.ts";
import { roles } from "../../serve/tenants.ts";
import { toMarkdown } from "../chat/transcript.ts";
import { readPort, sessionFlags, toggle, type SessionFlags } from "../config/flags.ts";
import { exitCodes, printJson, runCommand, say, UsageError } from "../io.ts";
import { prepare } from "../prepare.ts";
import { openBacking, type ServeRole } from "../serve/backing.ts";
import { limits } from "../serve/limits.ts";
import { createLook } from "../serve/look.ts";
import { createOpener, createSettingsCheck, type SessionSource } from "../serve/open-session.ts";
import { keepSwept } from "../serve/workspace.ts";
import { data, database, operator, token } from "../serve/tokens.ts";
import { version } from "../version.ts";

interface ServeFlags extends SessionFlags {
  readonly port?: number;
  readonly host?: string;
  readonly data?: string;
  readonly name?: readonly string[];
  readonly baseHost?: readonly string[];
  readonly places?: number;
  readonly database?: string;
  readonly role?: ServeRole;
  readonly files?: string;
  readonly frozenAfter?: number;
  readonly json?: boolean;
}

const start = buildCommand({
  docs: {
    brief: "start the service",
    fullDescription:
      "Sessions behind an HTTP API, with a page to watch them and answer their questions. Listens on this machine alone and prints a link that lets one browser in, once; with --host it can be reached from elsewhere, and every request needs a token ('callgate serve token add'). TLS is a proxy's business.",
  },
  parameters: {
    flags: {
      ...sessionFlags,
      port: {
        kind: "parsed",
        parse: readPort,
        optional: true,
        brief: "listen here; 0 takes a free one",
        placeholder: "N",
      },
      host: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "listen on this address instead of 127.0.0.1",
        placeholder: "ADDRESS",
      },
      name: {
        kind: "parsed",
        parse: String,
        optional: true,
        variadic: true,
        brief: "with --host: answer only requests for this host name",
        placeholder: "HOST",
      },
      baseHost: {
        kind: "parsed",
        parse: String,
        optional: true,
        variadic: true,
        brief: "sessions of any tenant may begin with a repository or archive of this host, at a private address too",
        placeholder: "HOST",
      },
      data,
      database,
      role: {
        kind: "enum",
        values: ["api", "worker"],
        optional: true,
        brief: "with --database: only answer requests (api), or only run sessions (worker)",
      },
      files: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief:
          "with --database: a folder that all workers share, or a bucket's https address, for sessions' files above 1 MB (else the database)",
        placeholder: "DIR|URL",
      },
      frozenAfter: {
        kind: "parsed",
        parse: readSeconds,
        optional: true,
        brief: "with --database: after this silence a worker's sessions are taken by others (10)",
        placeholder: "SECONDS",
      },
      places: {
        kind: "parsed",
        parse: readPlaces,
        optional: true,
        brief: "how many sessions run at once (200); the others wait",
        placeholder: "N",
      },
      json: toggle("one JSON line with url, token and link once it listens (a worker: its name, once it runs)"),
    },
  },
  func: (flags: ServeFlags) => runCommand(() => serve(flags)),
});

async function serve(flags: ServeFlags): Promise<number> {
  const { role, places } = flags;
  if (flags.database === undefined)
    for (const [flag, given] of Object.entries({ role, files: flags.files, "frozen-after": flags.frozenAfter }))
      if (given !== undefined)
        throw new UsageError(`--${flag} needs --database: without one, one process does everything`);
  if (role === "worker" && (flags.port !== undefined || flags.host !== undefined))
    throw new UsageError("a worker opens no port: leave --port and --host to '--role api'");
  if (flags.name !== undefined && flags.name.length > 0 && isLoopback(flags.host ?? "127.0.0.1"))
    throw new UsageError("--name needs --host: on this machine alone the service is called localhost");
  const { cwd, config } = await prepare(flags);
  const folder = resolve(flags.data ?? stateDir(process.env));
  const onError = (error: unknown, where: string) =>
    say(`callgate: ${where}: ${error instanceof Error ? error.message : String(error)}`);
  const { database: url, files, frozenAfter } = flags;
  const { worker, packs, ...backing } = await openBacking({
    folder,
    operator,
    places,
    files,
    onError,
    env: process.env,
    database: url,
    frozenAfterMs: frozenAfter === undefined ? undefined : frozenAfter * 1000,
  });
  const telemetry = await createTelemetry({ version });
  const source: SessionSource = {
    config,
    cwd,
    env: process.env,
    workspaces: join(folder, "serve", "workspaces"),
    operator,
    isShared: url !== undefined,
    baseHosts: flags.baseHost ?? [],
    ...defined({ packs, telemetry }),
  };
  const service = await createService({
    ...backing,
    ...(role === "api" ? {} : { open: createOpener(source) }),
    checkSettings: createSettingsCheck(source),
    look: createLook(config, cwd, process.env),
    toMarkdown: (row, records) => toMarkdown({ ...row, path: "" }, records),
    version,
    operator,
    model: config.model ?? "offline",
    folder: join(folder, "serve"),
    onError,
    ...defined({ places, telemetry }),
  });
  if (role !== "api") keepSwept(source.workspaces, backing.store, (error) => onError(error, "folders"));
  if (role !== "worker") return answer(service, flags, onError);
  if (flags.json) printJson({ worker }, false);
  else say(`callgate: worker ${worker} runs sessions`);
  await untilStopped(() => service.stop());
  return exitCodes.done;
}

/** Listens until it is told to stop. */
async function answer(
  service: Service,
  flags: ServeFlags,
  onError: (error: unknown, where: string) => void,
): Promise<number> {
  const { host = "127.0.0.1", port = flags.json ? 0 : 4180, name } = flags;
  const page = findPage();
  const serving = await startServing({
    service,
    host,
    port,
    onError,
    ...(name === undefined || name.length === 0 ? {} : { names: name }),
    ...(page === undefined ? {} : { page }),
  }).catch(async (error: unknown) => {
    await service.stop();
    throw error instanceof Error && "code" in error
      ? new UsageError(`cannot listen on ${host}:${port}: ${error.message}`)
      : error;
  });
  const me = { tenant: operator, name: "started", roles };
  // Revoked when the service ends. After a kill it expires within a week.
  const { id, token: own } = await issueToken(service.tokens, { ...me, lifetimeMs: 7 * 86_400_000 });
  const link = serving.link(me);
  if (flags.json) printJson({ url: serving.url, token: own, link }, false);
  else {
    say(`callgate: the service listens at ${serving.url}`);
    say(`callgate: its token is ${own}`);
    say(`callgate: this link lets one browser in, once: ${link}`);
    if (!isLoopback(host))
      say(
        "callgate: it can be reached from elsewhere: every request needs a token; put a proxy with TLS in front of it",
      );
  }
  await untilStopped(async () => {
    await service.tokens.remove(operator, id).catch(() => undefined); // it ends by itself
    await serving.close();
  });
  return exitCodes.done;
}

/** SIGTERM or SIGINT lets running calls end and leaves open turns to the next start. A second one ends at once. */
function untilStopped(close: () => Promise<void>): Promise<void> {
  return new Promise((done, fail) => {
    let isStopping = false;
    const stop = () => {
      if (isStopping) process.exit(exitCodes.interrupted);
      isStopping = true;
      close().then(done, fail);
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  });
}

export const command = buildRouteMap({
  routes: { start, token, limits },
  defaultCommand: "start",
  docs: { brief: "serve sessions over HTTP, with a page to watch them and answer their questions" },
});

function readPlaces(given: string): number {
  const places = Number(given);
  if (!Number.isInteger(places) || places < 1) throw new Error(`'${given}' is not a number of sessions`);
  return places;
}

function readSeconds(given: string): number {
  const seconds = Number(given);
  if (!(seconds >= 1 && seconds <= 3600)) throw new Error(`'${given}' is no number of seconds from 1 to 3600`);
  return seconds;
}
