import { buildCommand, buildRouteMap } from "@stricli/core";
import { join, resolve } from "node:path";
import { stateDir } from "../../base/paths.ts";
import type { Role } from "../../client/index.ts";
import { isLoopback } from "../../http/server.ts";
import { createService, issueToken, startServing, type Service, type TokenStore } from "../../serve/index.ts";
import { findPage } from "../../store/page.ts";
import { roles } from "../../serve/tenants.ts";
import { toMarkdown } from "../chat/transcript.ts";
import { sessionFlags, toggle, type SessionFlags } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";
import { prepare } from "../prepare.ts";
import { openBacking, withTokens, type ServeRole } from "../serve/backing.ts";
import { createLook } from "../serve/look.ts";
import { createOpener, createSettingsCheck, type SessionSource } from "../serve/open-session.ts";
import { version } from "../version.ts";

interface ServeFlags extends SessionFlags {
  readonly port?: number;
  readonly host?: string;
  readonly data?: string;
  readonly name?: readonly string[];
  readonly places?: number;
  readonly database?: string;
  readonly role?: ServeRole;
  readonly files?: string;
  readonly json?: boolean;
}

/** The tenant of whoever starts the service. */
const operator = "main";

const data = {
  kind: "parsed",
  parse: String,
  optional: true,
  brief: "keep sessions, tokens and logs below this folder",
  placeholder: "DIR",
} as const;

const database = {
  kind: "parsed",
  parse: readDatabase,
  optional: true,
  brief: "keep them in PostgreSQL, for any number of processes (needs the packages pg and @dbos-inc/dbos-sdk)",
  placeholder: "postgres://…",
} as const;

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
        brief: "with --database: a folder that all workers share, for sessions' files above 1 MB (else the database)",
        placeholder: "DIR",
      },
      places: {
        kind: "parsed",
        parse: readPlaces,
        optional: true,
        brief: "sessions that run at once (200); the others wait",
        placeholder: "N",
      },
      json: toggle("one JSON line with url, token and link once it listens (a worker: its name, once it runs)"),
    },
  },
  func: (flags: ServeFlags) => runCommand(() => serve(flags)),
});

async function serve(flags: ServeFlags): Promise<number> {
  const { role, places } = flags;
  if (role !== undefined && flags.database === undefined)
    throw new UsageError("--role needs --database: without one, one process does everything");
  const { cwd, config } = await prepare(flags);
  const folder = resolve(flags.data ?? stateDir(process.env));
  const onError = (error: unknown, where: string) =>
    say(`callgate: ${where}: ${error instanceof Error ? error.message : String(error)}`);
  const { database: url, files } = flags;
  const { worker, packs, ...backing } = await openBacking({ folder, database: url, operator, places, files, onError });
  const source: SessionSource = {
    config,
    cwd,
    env: process.env,
    workspaces: join(folder, "serve", "workspaces"),
    operator,
    isShared: url !== undefined,
    ...(packs === undefined ? {} : { packs }),
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
    ...(places === undefined ? {} : { places }),
  });
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
  // Taken back when the service ends; after a kill it is good for nothing within a week.
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

/** SIGTERM or SIGINT lets running calls end and leaves open turns to the next start; a second one ends at once. */
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

interface TenantFlags {
  readonly data?: string;
  readonly database?: string;
  readonly tenant?: string;
}

interface ListFlags extends TenantFlags {
  readonly json?: boolean;
}

interface AddFlags extends ListFlags {
  readonly roles?: readonly Role[];
}

const tenant = {
  kind: "parsed",
  parse: readTenant,
  optional: true,
  brief: "whose it is (main)",
  placeholder: "NAME",
} as const;
const tokenName = { brief: "a name for whoever has it", parse: String, placeholder: "NAME" } as const;
const tokensOf = <T>({ data: given, database: url }: TenantFlags, work: (tokens: TokenStore) => Promise<T>) =>
  withTokens({ folder: resolve(given ?? stateDir(process.env)), database: url }, work);

const token = buildRouteMap({
  routes: {
    add: buildCommand({
      docs: { brief: "a token; it is shown once" },
      parameters: {
        flags: {
          data,
          database,
          tenant,
          roles: {
            kind: "enum",
            values: roles,
            optional: true,
            variadic: ",",
            brief: "what it may do: watch,talk,approve,administer (watch)",
          },
          json: toggle("as JSON"),
        },
        positional: { kind: "tuple", parameters: [tokenName] },
      },
      func: (flags: AddFlags, name: string) =>
        runCommand(async () => {
          const who = { tenant: flags.tenant ?? operator, name, roles: flags.roles ?? ["watch" as const] };
          const made = await tokensOf(flags, (tokens) => issueToken(tokens, who));
          if (flags.json) printJson({ ...made, ...who }, false);
          else print(made.token);
        }),
    }),
    list: buildCommand({
      docs: { brief: "the tokens of a tenant, without the tokens themselves" },
      parameters: { flags: { data, database, tenant, json: toggle("as JSON") } },
      func: (flags: ListFlags) =>
        runCommand(async () => {
          const all = await tokensOf(flags, (tokens) => tokens.list(flags.tenant ?? operator));
          if (flags.json) printJson(all.map(({ hash: _hash, ...rest }) => rest));
          else for (const { id, name, roles: may } of all) print(`${id}  ${name}  ${may.join(",")}`);
        }),
    }),
    remove: buildCommand({
      docs: { brief: "the token is good for nothing from now on" },
      parameters: {
        flags: { data, database, tenant },
        positional: { kind: "tuple", parameters: [{ brief: "its id", parse: String, placeholder: "ID" }] },
      },
      func: (flags: TenantFlags, id: string) =>
        runCommand(async () => {
          if (!(await tokensOf(flags, (tokens) => tokens.remove(flags.tenant ?? operator, id))))
            throw new UsageError(`there is no token ${id}`);
        }),
    }),
  },
  docs: { brief: "who may use the service" },
});

export const command = buildRouteMap({
  routes: { start, token },
  defaultCommand: "start",
  docs: { brief: "sessions behind an HTTP API, with a page to watch them and answer their questions" },
});

function readPort(given: string): number {
  const port = Number(given);
  if (!/^\d+$/.test(given) || port > 65_535) throw new Error(`'${given}' is not a port`);
  return port;
}

function readPlaces(given: string): number {
  const places = Number(given);
  if (!Number.isInteger(places) || places < 1) throw new Error(`'${given}' is not a number of sessions`);
  return places;
}

function readDatabase(given: string): string {
  if (!/^postgres(ql)?:\/\//.test(given)) throw new Error("a database is an address such as postgres://user@host/name");
  return given;
}

function readTenant(given: string): string {
  if (!/^[\w.-]{1,64}$/.test(given)) throw new Error("a tenant's name has letters, digits, '.', '_' and '-'");
  return given;
}
