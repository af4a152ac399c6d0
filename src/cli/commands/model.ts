/** `callgate model`: models of one's own, known by their chat templates. */
import { existsSync } from "node:fs";
import { buildCommand, buildRouteMap } from "@stricli/core";
import { findDialect, toDialect, unknownDialect } from "../../dialect/dialects.ts";
import {
  inferHistoryForm,
  inferFromTemplate,
  type HistoryForm,
  type TemplateProfile,
  type TemplateSource,
} from "../../template/index.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";
import { findModel, hashOf, listModels, removeModel, saveModel, wireOf, type ModelRecord } from "../models.ts";
import { askForTemplate, readTemplateFile } from "../template-files.ts";

interface AddFlags {
  readonly baseUrl: string;
  readonly template: string;
  readonly wire?: string;
  readonly json?: boolean;
}

const name = {
  kind: "tuple",
  parameters: [{ parse: String, placeholder: "NAME", brief: "the model's name at its server" }],
} as const;
const json = toggle("print JSON");

const add = buildCommand<AddFlags, [string]>({
  docs: {
    brief: "add a model by its chat template",
    fullDescription:
      "Reads the template from FILE (tokenizer_config.json, chat_template.jinja, a GGUF file) or, with auto, from the server's /props; finds the dialect of its calls and everything else a request needs; and keeps it under NAME, for --model NAME.",
  },
  parameters: {
    positional: name,
    flags: {
      baseUrl: { kind: "parsed", parse: String, brief: "where the server is, such as http://127.0.0.1:8080/v1" },
      template: { kind: "parsed", parse: String, brief: "FILE, or auto to ask the server", default: "auto" },
      wire: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief:
          "chat+text (default: the server's template writes, we read), text (taught in the prompt), completions (rendered here), each also with :DIALECT",
      },
      json,
    },
  },
  func: (flags, model) => runCommand(async () => addModel(model, flags)),
});

async function addModel(model: string, flags: AddFlags): Promise<number> {
  if (!/^https?:\/\//i.test(flags.baseUrl) || !URL.canParse(flags.baseUrl))
    throw new UsageError(`'${flags.baseUrl}' is no address: give one such as http://127.0.0.1:8080/v1`);
  const { source, from } =
    flags.template === "auto" ? await askForTemplate(flags.baseUrl) : await fromFile(flags.template);
  const profile = inferFromTemplate(source.template, { tokens: source.tokens });
  const chosen = chooseRequest(profile, flags.wire);
  const { dialect: _dialect, ...facts } = profile;
  const form = historyFormFor(chosen, source);
  const record: ModelRecord = {
    name: model,
    baseUrl: flags.baseUrl,
    ...chosen,
    ...(form === undefined ? {} : { writes: form.dialect }),
    profile: facts,
    template: {
      from,
      sha256: hashOf(source.template),
      tokens: source.tokens,
      ...(chosen.request === "completions" ? { source: source.template } : {}),
    },
    added: new Date().toISOString(),
  };
  const before = findModel(model, process.env);
  const file = saveModel(record, process.env);
  if (flags.json === true) printJson(record);
  else {
    show(record);
    if (form !== undefined) print(`${"history".padEnd(14)}${agreements[form.agrees]}`);
    if (before !== undefined && before.template.sha256 !== record.template.sha256)
      say("callgate: the template is another than before; the record was made anew");
    say(`callgate: kept in ${file}; use it with --model ${model}`);
  }
  return exitCodes.done;
}

const agreements: Readonly<Record<HistoryForm["agrees"], string>> = {
  exact: "calls and results as the template itself writes them",
  spaces: "calls and results as the template itself writes them, but for spaces",
  no: "calls and results in the dialect's own form: the template's cannot be had with plain messages",
};

/** How the template writes calls and results matters only if they are sent as text. */
function historyFormFor(
  { request, dialect }: Pick<ModelRecord, "request" | "dialect">,
  { template, tokens }: TemplateSource,
): HistoryForm | undefined {
  if (request !== "text") return undefined;
  return inferHistoryForm(template, toDialect(dialect), { tokens });
}

async function fromFile(path: string) {
  const source = await readTemplateFile(path);
  if (source === undefined) throw new UsageError(`there is no chat template in ${path}`);
  return { source, from: path };
}

/** The server's own template is used if it lists tools and shows calls. Otherwise the tools are taught. */
function chooseRequest(profile: TemplateProfile, wire: string | undefined): Pick<ModelRecord, "request" | "dialect"> {
  const [kind, ...rest] = (wire ?? "").split(":");
  const named = rest.join(":");
  if (named !== "" && findDialect(named) === undefined)
    throw new UsageError(`${unknownDialect(named)} ('callgate dialects' lists them)`);
  const dialect = named === "" ? (profile.dialect ?? "function-calls-xml") : named;
  if (kind === "chat+text" || kind === "text" || kind === "completions") return { request: kind, dialect };
  if (wire !== undefined)
    throw new UsageError(`there is no wire '${wire}' here: chat+text, text or completions, each also with :DIALECT`);
  return { request: profile.calls && profile.dialect !== null ? "chat+text" : "text", dialect };
}

const showOne = buildCommand<{ readonly json?: boolean; readonly check?: boolean }, [string]>({
  docs: { brief: "show what is kept about a model" },
  parameters: {
    positional: name,
    flags: { json, check: toggle("read the template again and say whether it changed") },
  },
  func: (flags, model) =>
    runCommand(async () => {
      const record = findModel(model, process.env);
      if (record === undefined)
        throw new UsageError(`no model '${model}' was added ('callgate model list' lists them)`);
      if (flags.json === true) printJson(record);
      else show(record);
      const now = await templateNow(record, flags.check === true);
      if (now === undefined || hashOf(now) === record.template.sha256) return exitCodes.done;
      say(
        `callgate: the template changed since ${record.added.slice(0, 10)}: run 'callgate model add ${model} …' again`,
      );
      return flags.check === true ? exitCodes.failed : exitCodes.done;
    }),
});

/** The template as it is now. Files are always read again, a server only when asked. */
async function templateNow({ template, baseUrl }: ModelRecord, ask: boolean): Promise<string | undefined> {
  if (!/^https?:/i.test(template.from))
    return existsSync(template.from) ? (await readTemplateFile(template.from))?.template : undefined;
  return ask ? (await askForTemplate(baseUrl)).source.template : undefined;
}

function show(record: ModelRecord): void {
  const { profile } = record;
  const thoughts = profile.opensThoughts;
  const begins = (inside: boolean) => (inside ? "thoughts" : "text");
  const rows: readonly (readonly [string, string])[] = [
    ["model", `${record.name} at ${record.baseUrl}`],
    ["wire", wireOf(record)],
    [
      "dialect",
      `${typeof record.dialect === "string" ? record.dialect : "derived from the template"} (${profile.evidence.join("; ")})`,
    ],
    [
      "answers begin",
      `in ${begins(thoughts.default)}; thinking asked for: ${begins(thoughts.on)}, switched off: ${begins(thoughts.off)}`,
    ],
    [
      "template",
      `tells tools: ${yes(profile.tools)}; several calls: ${yes(profile.parallel)}; system role: ${yes(profile.system)}; arguments as ${profile.arguments ?? "nothing"}; ids: ${profile.ids.rule}`,
    ],
    ["turn", `ends with ${profile.end ?? "nothing it shows"}; ${profile.markers.length} markers are broken in results`],
    [
      "made from",
      `${record.template.from} (sha256 ${record.template.sha256.slice(0, 12)}, ${record.added.slice(0, 10)})`,
    ],
  ];
  for (const [what, text] of rows) print(`${what.padEnd(14)}${text}`);
}

function yes(value: boolean): string {
  return value ? "yes" : "no";
}

const list = buildCommand<{ readonly json?: boolean }>({
  docs: { brief: "list the models that were added" },
  parameters: { flags: { json } },
  func: (flags) =>
    runCommand(async () => {
      const records = listModels(process.env);
      if (flags.json === true)
        return printJson(
          records.map((record) => ({
            name: record.name,
            baseUrl: record.baseUrl,
            wire: wireOf(record),
            added: record.added,
          })),
        );
      if (records.length === 0)
        return print("No model was added yet: callgate model add NAME --base-url URL --template FILE");
      for (const record of records) print(`${record.name}  ${wireOf(record)}  ${record.baseUrl}`);
    }),
});

const remove = buildCommand<{ readonly json?: boolean }, [string]>({
  docs: { brief: "forget a model" },
  parameters: { positional: name, flags: { json } },
  func: (_flags, model) =>
    runCommand(async () => {
      if (!removeModel(model, process.env)) throw new UsageError(`no model '${model}' was added`);
    }),
});

export const command = buildRouteMap({
  docs: { brief: "manage your own models, by their chat templates" },
  routes: { add, list, show: showOne, remove },
  defaultCommand: "list",
});
