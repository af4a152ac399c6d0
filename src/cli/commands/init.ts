import { buildCommand } from "@stricli/core";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { defined } from "../../base/json.ts";
import { text } from "../../base/content.ts";
import { providers } from "../../model/providers.ts";
import { collect } from "../../wire/answer.ts";
import { userConfigFile, type Config } from "../config/config.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, runCommand, say, UsageError } from "../io.ts";
import { selectModel } from "../select-model.ts";

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
  const chosen =
    flags.provider !== undefined && flags.model !== undefined
      ? toConfig(flags.provider, flags.model, flags.baseUrl)
      : await askPerson(flags);
  if (chosen === undefined) return exitCodes.interrupted;
  writeSettings(file, chosen);
  print(`wrote ${file}`);
  sayKey(chosen);
  return flags.check ? tryIt(chosen) : exitCodes.done;
}

function toConfig(provider: string, model: string, baseUrl: string | undefined): Config {
  if (!Object.hasOwn(providers, provider))
    throw new UsageError(`there is no provider '${provider}': ${Object.keys(providers).join(", ")}`);
  return { provider, model, ...defined({ base_url: baseUrl }) };
}

async function askPerson(flags: InitFlags): Promise<Config | undefined> {
  if (!process.stdin.isTTY) throw new UsageError("nobody is here to ask: give --provider and --model");
  const { cancel, isCancel, select, text: ask } = await import("@clack/prompts");
  const provider =
    flags.provider ??
    (await select({
      message: "Who runs the model?",
      options: Object.entries(providers).map(([value, { title, baseUrl }]) => ({ value, label: title, hint: baseUrl })),
    }));
  if (isCancel(provider)) return void cancel("nothing was written");
  const url =
    flags.baseUrl ??
    (provider === "custom"
      ? await ask({ message: "Its address?", placeholder: "http://127.0.0.1:8080/v1" })
      : undefined);
  if (isCancel(url)) return void cancel("nothing was written");
  const model = flags.model ?? (await ask({ message: "Which model? (its name at the provider)" }));
  if (isCancel(model) || model === undefined || model === "") return void cancel("nothing was written");
  return toConfig(provider, model, url);
}

/** Keeps everything else that stands in the file. */
function writeSettings(file: string, config: Config): void {
  const before = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  // Settings of their own stand before the first table; the same words inside a table mean something else.
  const tables = before.findIndex((line) => /^\s*\[/.test(line));
  const kept = before.filter(
    (line, index) => (tables !== -1 && index >= tables) || !/^\s*(provider|model|base_url)\s*=/.test(line),
  );
  const lines = Object.entries(config).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `${[...lines, ...kept].join("\n").trimEnd()}\n`, { mode: 0o600 });
}

function sayKey(config: Config): void {
  const { keyEnv } = providers[config.provider!]!;
  if (keyEnv !== undefined && !process.env[keyEnv])
    print(`set ${keyEnv} in your environment: keys are never written to a file of ours`);
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
    return exitCodes.failed;
  }
  print("It answers. Now: callgate (a session here), callgate exec PROMPT, callgate doctor.");
  return exitCodes.done;
}
