/** `callgate dialects`: the text dialects, and which of them a model speaks. */
import { buildCommand, buildRouteMap } from "@stricli/core";
import { dialects, inferDialect } from "../../dialect/index.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, readInput, runCommand, say, UsageError } from "../io.ts";

interface Flags {
  readonly json?: boolean;
}

const json = toggle("print JSON");

const list = buildCommand<Flags>({
  docs: { brief: "the dialects, with the models that speak them" },
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

const infer = buildCommand<Flags, string[]>({
  docs: {
    brief: "which dialect a model speaks, from its chat template or its answers",
    fullDescription:
      "Reads a chat template (Jinja, as in tokenizer_config.json or GGUF metadata) or one recorded answer per FILE, and names the dialects they point to, the likeliest first. Ends with 1 if none does.",
  },
  parameters: {
    flags: { json },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "FILE", brief: "a template or an answer; - is stdin" },
    },
  },
  func: (flags, ...files) =>
    runCommand(async () => {
      if (files.filter((file) => file === "-").length > 1) throw new UsageError("stdin can be read only once");
      const texts = await Promise.all((files.length === 0 ? ["-"] : files).map(readInput));
      const found = inferDialect(texts.map(templateOf));
      if (flags.json === true) printJson(found);
      else for (const { dialect, evidence } of found.slice(0, 5)) print(`${dialect}  (${evidence.join(", ")})`);
      if (found.length > 0) return exitCodes.done;
      say("callgate: nothing in it points to a dialect; try --wire text:auto");
      return exitCodes.failed;
    }),
});

/** A tokenizer_config.json holds the template as a string. */
function templateOf(text: string): string {
  if (!text.trimStart().startsWith("{") || !text.includes('"chat_template"')) return text;
  try {
    const template: unknown = (JSON.parse(text) as { chat_template?: unknown }).chat_template;
    return typeof template === "string" ? template : JSON.stringify(template);
  } catch {
    return text; // No JSON after all: read as it is.
  }
}

export const command = buildRouteMap({
  docs: { brief: "the text dialects, and which of them a model speaks" },
  routes: { list, infer },
  defaultCommand: "list",
});
