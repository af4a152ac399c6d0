/** `callgate dialects`: the text dialects, and which of them a model speaks. */
import { buildCommand, buildRouteMap } from "@stricli/core";
import { dialects, inferDialect } from "../../dialect/index.ts";
import type * as TemplateModule from "../../template/index.ts";
import type { TemplateProfile, TemplateSource } from "../../template/index.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, readInput, runCommand, say, UsageError } from "../io.ts";

interface Flags {
  readonly json?: boolean;
}

const json = toggle("print JSON");

const list = buildCommand<Flags>({
  docs: { brief: "list the dialects, with the models that use them" },
  parameters: { flags: { json } },
  func: (flags) =>
    runCommand(async () => {
      const rows = dialects.map(({ name, aliases = [], title, models, trust, notes }) => ({
        name,
        title,
        models,
        aliases,
        trust,
        notes: notes ?? null,
      }));
      if (flags.json === true) return printJson(rows);
      const width = Math.max(...rows.map(({ name }) => name.length));
      for (const { name, title, models } of rows) print(`${name.padEnd(width)}  ${title} (${models.join(", ")})`);
    }),
});

interface InferFlags extends Flags {
  readonly show?: boolean;
}

const infer = buildCommand<InferFlags, string[]>({
  docs: {
    brief: "find out which dialect a model uses, from its chat template or its answers",
    fullDescription:
      "Renders a chat template (Jinja: tokenizer_config.json, chat_template.jinja, a GGUF file, a llama.cpp server's /props) with a probe conversation and names the dialect that reads it; or reads one recorded answer per FILE and names the dialects they point to, the likeliest first. Ends with 1 if none does.",
  },
  parameters: {
    flags: { json, show: toggle("print the rendered turn of one call") },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "FILE", brief: "a template or an answer; - is stdin" },
    },
  },
  func: (flags, ...files) =>
    runCommand(async () => {
      if (files.filter((file) => file === "-").length > 1) throw new UsageError("stdin can be read only once");
      const given = files.length === 0 ? ["-"] : files;
      const [{ readTemplateFile }, template] = await Promise.all([
        import("../template-files.ts"),
        import("../../template/index.ts"),
      ]);
      const profiles: Read[] = [];
      const answers: string[] = [];
      for (const file of given) {
        const text = file === "-" ? await readInput(file) : undefined;
        const source = text === undefined ? await readTemplateFile(file) : template.readTemplateSource(text);
        if (source === undefined) answers.push(text ?? (await readInput(file)));
        else profiles.push({ file, profile: await profileOf(template, source) });
      }
      const read = answers.length === 0 ? [] : inferDialect(answers);
      if (flags.json === true) printFound(profiles, read);
      else {
        for (const { file, profile } of profiles)
          printProfile(given.length > 1 ? file : undefined, profile, flags.show === true);
        for (const { dialect, evidence } of read.slice(0, 5)) print(`${dialect}  (${evidence.join(", ")})`);
      }
      if (profiles.every(({ profile }) => profile.dialect !== null) && (answers.length === 0 || read.length > 0))
        return exitCodes.done;
      say("callgate: nothing in it points to a dialect; try --wire text:auto");
      return exitCodes.failed;
    }),
});

interface Read {
  readonly file: string;
  readonly profile: TemplateProfile;
}

/**
 * One template gives its profile, several give a list with their files, and answers give the dialects
 * they point to.
 */
function printFound(profiles: readonly Read[], read: ReturnType<typeof inferDialect>): void {
  const [first] = profiles;
  if (first === undefined) printJson(read);
  else printJson(profiles.length === 1 ? first.profile : profiles.map(({ file, profile }) => ({ file, ...profile })));
}

/** Renders the template. If that fails, the markers in its text are used, and the reason is stated. */
async function profileOf(template: typeof TemplateModule, source: TemplateSource): Promise<TemplateProfile> {
  try {
    return template.inferFromTemplate(source.template, { tokens: source.tokens });
  } catch (error) {
    if (!(error instanceof template.TemplateError)) throw error;
    const [found] = inferDialect(source.template);
    const why = `the template cannot be rendered (${error.message})`;
    say(`callgate: ${why}; its text is searched for markers`);
    const { unknownProfile } = await import("../../template/infer.ts");
    return {
      ...unknownProfile,
      dialect: found?.dialect ?? null,
      how: found === undefined ? "none" : "told",
      evidence: [why, ...(found === undefined ? [] : [`holds ${found.evidence.join(", ")}`])],
    };
  }
}

function printProfile(file: string | undefined, profile: TemplateProfile, show: boolean): void {
  const { dialect, evidence, alike, turn } = profile;
  const name = dialect === null ? "none" : typeof dialect === "string" ? dialect : "derived";
  const also = alike.length === 0 ? "" : `; also ${alike.join(", ")}`;
  print(`${file === undefined ? "" : `${file}: `}${name}  (${evidence.join("; ")}${also})`);
  if (dialect !== null && typeof dialect !== "string") printJson(dialect);
  if (show && turn !== null) print(turn);
}

export const command = buildRouteMap({
  docs: { brief: "list the text dialects, or find out which one a model speaks" },
  routes: { list, infer },
  defaultCommand: "list",
});
