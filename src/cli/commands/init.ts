import { buildCommand } from "@stricli/core";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { defined } from "../../base/json.ts";
import { text } from "../../base/content.ts";
import { guessProvider, providers, unknownProvider } from "../../model/providers.ts";
import { collect } from "../../wire/answer.ts";
import { userConfigFile, type Config } from "../config/config.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, runCommand, say, UsageError } from "../io.ts";
import { listModelsOf, missingKey, selectModel } from "../select-model.ts";

interface InitFlags {
  readonly provider?: string;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly force?: boolean;
  readonly check: boolean;
}

export const command = buildCommand({
  docs: { brief: "choose a model, write the settings, try them" },
  parameters: {
    flags: {
      provider: { kind: "parsed", parse: String, optional: true, brief: "instead of being asked", placeholder: "NAME" },
      model: { kind: "parsed", parse: String, optional: true, brief: "instead of being asked", placeholder: "NAME" },
      baseUrl: { kind: "parsed", parse: String, optional: true, brief: "an address of your own", placeholder: "URL" },
      force: toggle("replace the provider in an existing file"),
      check: { kind: "boolean", default: true, brief: "ask the model one question to see that it works" },
    },
  },
  func: (flags: InitFlags) => runCommand(() => init(flags)),
});

async function init(flags: InitFlags): Promise<number> {
  const file = userConfigFile(process.env);
  if (existsSync(file) && !flags.force)
    throw new UsageError(`${file} is there already; --force changes the provider in it`);
  const provider =
    flags.provider ??
    (flags.model === undefined ? undefined : flags.baseUrl === undefined ? guessProvider(flags.model) : "custom");
  const chosen =
    provider !== undefined && flags.model !== undefined
      ? toConfig(provider, flags.model, flags.baseUrl)
      : await askPerson(flags);
  if (chosen === undefined) return exitCodes.interrupted;
  if (chosen === nobody) return exitCodes.done;
  writeSettings(file, chosen);
  print(`wrote ${file}`);
  // Your own address may need no key, so it is tried without one.
  const { keyEnv } = providers[chosen.provider!]!;
  if (keyEnv !== undefined && chosen.provider !== "custom" && !process.env[keyEnv])
    print(`set ${keyEnv} in your environment (keys are never written to a file of ours), then: callgate doctor`);
  const canTry = flags.check && missingKey(chosen, process.env) === undefined;
  return canTry ? tryIt(chosen) : exitCodes.done;
}

function toConfig(provider: string, model: string, baseUrl: string | undefined): Config {
  if (!Object.hasOwn(providers, provider)) throw new UsageError(unknownProvider(provider));
  return { provider, model, ...defined({ base_url: baseUrl }) };
}

async function askPerson(flags: InitFlags): Promise<Config | typeof nobody | undefined> {
  if (flags.provider !== undefined && !Object.hasOwn(providers, flags.provider))
    throw new UsageError(unknownProvider(flags.provider));
  if (!process.stdin.isTTY) throw new UsageError("nobody is here to ask: give --provider and --model");
  const { cancel, isCancel, outro, select, text: ask } = await import("@clack/prompts");
  const provider =
    flags.provider ??
    (await select({
      message: "Who runs the model?",
      options: [
        ...Object.entries(providers).map(([value, { title, baseUrl }]) => ({ value, label: title, hint: baseUrl })),
        { value: nobody, label: "nobody yet", hint: "go on with the built-in offline planner" },
      ],
    }));
  if (provider === nobody) {
    outro("Nothing was written. Without a model, callgate uses its offline planner.");
    return nobody;
  }
  if (isCancel(provider)) return void cancel("nothing was written");
  const url =
    flags.baseUrl ??
    (provider === "custom"
      ? await ask({ message: "Its address?", placeholder: localAddress, defaultValue: localAddress })
      : undefined);
  if (isCancel(url)) return void cancel("nothing was written");
  const model = flags.model ?? (await askModel(toConfig(provider, "", url)));
  if (model === undefined) return void cancel("nothing was written");
  return toConfig(provider, model, url);
}

/** The choice to go on without a provider. No provider has this name. */
const nobody = "\0nobody";
const localAddress = "http://127.0.0.1:8080/v1";
/** Stands for a name that is typed in. No model has this name. */
const another = "\0another";

/** From the provider's own list if it has one, otherwise by name. An empty line asks again. */
async function askModel(config: Config): Promise<string | undefined> {
  const { autocomplete, isCancel, log, spinner, text: ask } = await import("@clack/prompts");
  const missing = missingKey(config, process.env);
  const wait = spinner();
  wait.start("asking for the list of models");
  const listed = missing === undefined ? await listModelsOf(config, process.env) : undefined;
  wait.stop(listed?.ok ? `${listed.models.length} models` : "the models are not listed");
  if (missing !== undefined) log.info(`${missing} is not set, so the list of models cannot be asked for`);
  else if (listed?.ok === false) log.info(listed.detail);
  if (listed?.ok && listed.models.length > 0) {
    const chosen = await autocomplete({
      message: "Which model? (type to search)",
      options: [
        ...listed.models.map((value) => ({ value, label: value })),
        { value: another, label: "another name …" },
      ],
      maxItems: 10,
    });
    if (isCancel(chosen)) return undefined;
    if (chosen !== another && chosen !== undefined) return chosen;
  }
  const name = await ask({
    message: "Which model? (its name at the provider)",
    validate: (given) =>
      given === undefined || given.trim() === "" ? "a name is needed; ctrl-c ends this" : undefined,
  });
  return isCancel(name) ? undefined : name.trim();
}

/** Writes the settings, and keeps everything else in the file. */
function writeSettings(file: string, config: Config): void {
  const before = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  // Top-level settings stand before the first table, because the same words inside a table mean something else.
  const tables = before.findIndex((line) => /^\s*\[/.test(line));
  const kept = before.filter(
    (line, index) => (tables !== -1 && index >= tables) || !/^\s*(provider|model|base_url)\s*=/.test(line),
  );
  const lines = Object.entries(config).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `${[...lines, ...kept].join("\n").trimEnd()}\n`, { mode: 0o600 });
}

async function tryIt(config: Config): Promise<number> {
  const selected = await selectModel(config, process.env);
  say(`asking ${selected.model.name} …`);
  const question = { type: "message", role: "user", content: [text("Answer with the single word: ready")] } as const;
  const answer = await collect(
    selected.model.ask({ model: selected.model.name, input: [question], tools: [] }, AbortSignal.timeout(60_000)),
  );
  await selected.close();
  if (answer.outcome !== "ok") {
    say(`callgate: it did not work: ${answer.error?.message ?? answer.outcome}`);
    say("callgate: the settings are kept. 'callgate doctor' tries again, 'callgate init --force' changes them.");
    return exitCodes.failed;
  }
  print("It answers. Now: callgate (a session here), callgate exec PROMPT, callgate doctor.");
  return exitCodes.done;
}
