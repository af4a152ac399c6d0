import { spawn } from "node:child_process";
import { buildCommand, buildRouteMap } from "@stricli/core";
import { defined } from "../../base/json.ts";
import { openKeyFile, type RequestRecord } from "../../gateway/index.ts";
import { readPort, sessionFlags, type SessionFlags, toggle } from "../config/flags.ts";
import { type ClientName, clientNames, describeSetup, setupFor } from "../gateway/clients.ts";
import { filesFor } from "../gateway/run-files.ts";
import {
  defaultPort,
  keyPath,
  lookForModel,
  startFromSettings,
  type StartedGateway,
  type StartOptions,
} from "../gateway/start.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";
import { prepare } from "../prepare.ts";

interface GatewayFlags extends SessionFlags {
  readonly port?: number;
  readonly host?: string;
  readonly json?: boolean;
  readonly noKey?: boolean;
  readonly enforce?: boolean;
  readonly smallModel?: string;
}

const flags = {
  ...sessionFlags,
  port: {
    kind: "parsed",
    parse: readPort,
    optional: true,
    brief: `listen here instead of ${defaultPort}, or a free one where that is taken; 0 takes a free one`,
    placeholder: "N",
  },
  host: {
    kind: "parsed",
    parse: String,
    optional: true,
    brief: "listen on this address instead of 127.0.0.1; everybody who can reach it can ask",
    placeholder: "ADDRESS",
  },
  json: toggle("one JSON line with url and key, then one for each request"),
  noKey: toggle("let everybody on this machine in, without a key"),
  enforce: toggle("calls that the policy refuses do not reach the client; otherwise they are only told"),
  smallModel: {
    kind: "parsed",
    parse: String,
    optional: true,
    brief: "a model for side questions: titles, short summaries",
    placeholder: "NAME",
  },
} as const;

const start = buildCommand({
  docs: { brief: "start the gateway" },
  parameters: { flags },
  func: (given: GatewayFlags) => runCommand(() => serve(given)),
});

/** What can be started; `env` is only printed. */
const programNames = clientNames.filter((name) => name !== "env");

const clientPositional = {
  brief: clientNames.join(", "),
  parse: (name: string) => readClient(name),
  placeholder: "CLIENT",
} as const;

interface PrintFlags {
  readonly url?: string;
  readonly key?: string;
  readonly model?: string;
  readonly json?: boolean;
}

const printCommand = buildCommand({
  docs: { brief: "print the exact lines or files that point a client at the gateway" },
  parameters: {
    flags: {
      url: { kind: "parsed", parse: readUrl, optional: true, brief: "where the gateway is", placeholder: "URL" },
      key: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "the key that the gateway printed, or one of 'gateway key add'",
        placeholder: "KEY",
      },
      model: { kind: "parsed", parse: String, optional: true, brief: "the model's name", placeholder: "NAME" },
      json: toggle("as JSON"),
    },
    positional: { kind: "tuple", parameters: [clientPositional] },
  },
  func: (given: PrintFlags, client: ClientName) =>
    runCommand(async () => {
      const { url = `http://127.0.0.1:${defaultPort}`, key = "YOUR-KEY", model = "default" } = given;
      const setup = setupFor(client, { url, key, model });
      if (given.json) return printJson(setup);
      for (const line of describeSetup(client, setup)) print(line);
      if (given.key === undefined)
        say(
          "callgate: YOUR-KEY stands for the key that the gateway printed, or one that 'callgate gateway key add NAME' makes (--key puts it in)",
        );
    }),
});

const run = buildCommand({
  docs: { brief: "start a client with everything set: callgate gateway run claude -- -p 'hello'" },
  parameters: {
    flags,
    positional: {
      kind: "array",
      parameter: { brief: `${programNames.join(", ")}, then its own arguments`, parse: String, placeholder: "CLIENT" },
    },
  },
  func: (given: GatewayFlags, ...words: readonly string[]) => runCommand(() => runClient(given, words)),
});

const keyName = { brief: "a name for the client", parse: String, placeholder: "NAME" } as const;
const keyCommands = buildRouteMap({
  routes: {
    add: buildCommand({
      docs: { brief: "add a key for one client; it is shown only once" },
      parameters: { positional: { kind: "tuple", parameters: [keyName] } },
      func: (_flags: object, name: string) =>
        runCommand(async () => {
          const keys = openKeyFile(keyPath(process.env));
          if (keys.list().some((key) => key.name === name))
            throw new UsageError(`there is already a key '${name}': take another name, or remove it first`);
          print(keys.add(name));
        }),
    }),
    list: buildCommand({
      docs: { brief: "list the keys by name" },
      parameters: { flags: { json: toggle("as JSON") } },
      func: (given: { readonly json?: boolean }) =>
        runCommand(async () => {
          const keys = openKeyFile(keyPath(process.env)).list();
          if (given.json) printJson(keys.map(({ name, createdAt }) => ({ name, createdAt })));
          else for (const { name, createdAt } of keys) print(`${name}  since ${createdAt}`);
        }),
    }),
    remove: buildCommand({
      docs: { brief: "revoke a client's key" },
      parameters: { positional: { kind: "tuple", parameters: [keyName] } },
      func: (_flags: object, name: string) =>
        runCommand(async () => {
          if (!openKeyFile(keyPath(process.env)).remove(name)) throw new UsageError(`there is no key '${name}'`);
        }),
    }),
  },
  docs: { brief: "manage the keys of other clients" },
});

export const command = buildRouteMap({
  routes: { start, print: printCommand, run, key: keyCommands },
  defaultCommand: "start",
  docs: { brief: "run any agent on any model: a local server that speaks Responses, Messages, Chat and Gemini" },
});

async function serve(given: GatewayFlags): Promise<number> {
  const gateway = await startFromSettings(
    await toOptions(given, (record) => {
      if (given.json) printJson({ type: "request", ...record }, false);
      else tell(record, gateway.enforce);
    }),
  );
  if (given.json) printJson({ url: gateway.url, ...defined({ key: gateway.key }) }, false);
  else {
    say(`callgate: the gateway listens at ${gateway.url}`);
    say(gateway.key === undefined ? "callgate: no key is needed" : `callgate: its key is ${gateway.key}`);
    const key = gateway.key === undefined ? "none" : gateway.key;
    say(`callgate: point a client at it with 'callgate gateway print claude --url ${gateway.url} --key ${key}'`);
  }
  await untilStopped(gateway);
  return exitCodes.done;
}

async function toOptions(given: GatewayFlags, onRequest: (record: RequestRecord) => void): Promise<StartOptions> {
  const { cwd, config } = await prepare(given);
  if (given.noKey === true && given.host !== undefined && !/^(?:127\.|localhost$|::1$)/.test(given.host))
    throw new UsageError("--no-key is for this machine alone: leave out --host, or give clients keys");
  const { port, host, noKey, enforce, smallModel } = given;
  return { config, cwd, env: process.env, onRequest, ...defined({ port, host, noKey, enforce, smallModel }) };
}

/** Prints one line for each request, for the person who started the gateway. */
function tell(record: RequestRecord, enforce: boolean): void {
  const { client, model, target, status, durationMs, calls, refused, error } = record;
  const tokens = record.inputTokens === undefined ? "" : `, ${record.inputTokens} → ${record.outputTokens} tokens`;
  const what = error === undefined ? `${calls} ${calls === 1 ? "call" : "calls"}${tokens}` : error;
  say(`${client} asked for ${model}: ${target}, ${status}, ${what}, ${durationMs} ms`);
  for (const { call, reason } of refused)
    say(`  ${call} ${enforce ? "was refused" : "would be refused with --enforce"}: ${reason}`);
}

/** SIGTERM or SIGINT lets running answers end; a second one ends them at once. */
function untilStopped(gateway: StartedGateway): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => void gateway.close().then(resolve);
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  });
}

async function runClient(given: GatewayFlags, words: readonly string[]): Promise<number> {
  const [name, ...own] = words;
  if (name === undefined) throw new UsageError(`which client? callgate gateway run ${programNames.join("|")}`);
  if (name === "env") throw new UsageError("'env' is no program: use 'callgate gateway print env'");
  const client = readClient(name, programNames);
  const options = await toOptions({ port: 0, ...given }, () => undefined);
  const contextWindow = await lookForModel(options);
  const gateway = await startFromSettings(options);
  const { url, key = "none", model } = gateway;
  const setup = setupFor(client, { url, key, model, ...defined({ contextWindow }) });
  const files = filesFor(setup, process.env);
  const code = await new Promise<number>((resolve, reject) => {
    const child = spawn(setup.program, [...setup.args, ...own], {
      stdio: "inherit",
      env: { ...process.env, ...setup.env, ...files.env },
    });
    // The terminal sends SIGINT to the client as well. Whatever ends the client, the gateway ends after it.
    process.on("SIGINT", () => undefined);
    for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
    child.on("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "ENOENT"
          ? new UsageError(`there is no program '${setup.program}' on the PATH: install it first`)
          : error,
      ),
    );
    child.on("close", (status) => resolve(status ?? exitCodes.failed));
  }).finally(() => {
    files.remove();
    return gateway.close();
  });
  return code;
}

function readClient(name: string, known: readonly ClientName[] = clientNames): ClientName {
  const found = known.find((client) => client === name);
  if (found !== undefined) return found;
  throw new UsageError(`there is no client '${name}': ${known.join(", ")}`);
}

function readUrl(given: string): string {
  if (!/^https?:\/\/[^/]/.test(given) || !URL.canParse(given))
    throw new Error(`'${given}' is not an address such as http://127.0.0.1:${defaultPort}`);
  return given.replace(/\/+$/, "");
}
