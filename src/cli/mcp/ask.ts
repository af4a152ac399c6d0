/** A server's question to a person. Every word of it is marked as the server's, and nothing is done without a yes. */
import { lookAlikes, toQuotedBlock, toVisibleLine } from "../../gate/show.ts";
import type { Elicitation, ElicitationAnswer } from "../../mcp/index.ts";
import { readFields, type Field, type FormValue } from "./form.ts";
import type { Asking, Choice } from "../chat/person.ts";

/** A longer message would hide what it asks for. */
const maxMessage = 4_000;
const maxFields = 40;

const declined: ElicitationAnswer = { action: "decline" };
const cancelled: ElicitationAnswer = { action: "cancel" };

export interface AskOptions {
  /** Shows a page in the person's browser; only when they chose so. */
  readonly openPage: (url: URL) => void;
  /** Left out: the server, by its name. */
  readonly who?: string;
}

export async function askPerson(
  question: Elicitation,
  asking: Asking,
  options: AskOptions,
): Promise<ElicitationAnswer> {
  return question.mode === "url" ? askForPage(question, asking, options) : askForm(question, asking, options);
}

function headOf({ server, message, callId }: Elicitation, { who }: AskOptions): string {
  const cut = message.length > maxMessage ? `${message.slice(0, maxMessage)}… (cut)` : message;
  const during = callId === undefined ? "" : ` during call ${toVisibleLine(callId)}`;
  return `${who ?? `The MCP server '${server}'`} asks${during}:\n${toQuotedBlock(cut)}`;
}

async function askForPage(
  question: Elicitation & { readonly mode: "url" },
  asking: Asking,
  options: AskOptions,
): Promise<ElicitationAnswer> {
  const url = URL.canParse(question.url) ? new URL(question.url) : undefined;
  // Only web addresses are ever opened, because other schemes start programs.
  if (url === undefined || !/^https?:$/.test(url.protocol)) return declined;
  const words = [headOf(question, options), `It wants you to open a page on  ${url.host}`, toQuotedBlock(url.href)];
  for (const doubt of doubtsAbout(url, question.url)) words.push(`  ! ${doubt}`);
  const answer = await asking.choose(words.join("\n"), [
    { value: "open", label: "Open it in the browser" },
    { value: "self", label: "I open it myself" },
    { value: "no", label: "No" },
  ]);
  if (answer === undefined) return cancelled;
  if (answer === "open") options.openPage(url);
  return answer === "open" || answer === "self" ? { action: "accept" } : declined;
}

function doubtsAbout(url: URL, written: string): readonly string[] {
  const foreign = lookAlikes(written).slice(0, 8);
  return [
    ...(url.protocol === "http:" && !/^(127\.|localhost$|\[::1\])/.test(url.hostname) ? ["it is not encrypted"] : []),
    ...(url.username === "" && url.password === "" ? [] : ["a name before the @ is not where it goes"]),
    ...(url.hostname.includes("xn--") ? ["the host's name has letters that are not ASCII"] : []),
    ...(foreign.length === 0 ? [] : [`not ASCII, though it may look so: ${foreign.join(", ")}`]),
  ];
}

async function askForm(
  question: Elicitation & { readonly mode: "form" },
  asking: Asking,
  options: AskOptions,
): Promise<ElicitationAnswer> {
  const fields = readFields(question.schema);
  if (fields.length > maxFields) return declined;
  const wants = fields.map(describeField);
  const secret = fields.some(({ isSecret }) => isSecret)
    ? ["  ! It seems to ask for a secret. Servers must not do that in a form: what you write goes to the server."]
    : [];
  const begins = await asking.choose([headOf(question, options), ...wants, ...secret].join("\n"), beginnings(fields));
  if (begins === undefined) return cancelled;
  if (begins === "no") return declined;
  const values = begins === "as-is" ? fields.map(defaultOf) : await askFields(fields, asking);
  if (values === undefined) return cancelled;
  const given = values.filter((entry) => entry !== undefined);
  if (begins === "fill" && !(await confirm(question.server, given, asking))) return declined;
  return { action: "accept", content: Object.fromEntries(given) };
}

function describeField({ label, about, required, kind }: Field): string {
  const what = { text: "text", number: "number", "yes-no": "yes or no", one: "choice", many: "choices" }[kind];
  return `  • ${label} (${what}${required ? ", required" : ""})${about === undefined ? "" : `: ${about}`}`;
}

/** A form without fields is a yes-or-no question. A form that is already filled in can be sent as it is. */
function beginnings(fields: readonly Field[]): readonly Choice[] {
  const isComplete = fields.every((field) => !field.required || field.default !== undefined);
  const asIs = fields.length === 0 ? "Yes" : "Send it with the values it has";
  return [
    ...(fields.length === 0 ? [] : [{ value: "fill", label: "Answer" }]),
    ...(isComplete ? [{ value: "as-is", label: asIs }] : []),
    { value: "no", label: "No" },
  ];
}

type Given = readonly [name: string, value: FormValue] | undefined;

function defaultOf({ name, default: value }: Field): Given {
  return value === undefined ? undefined : [name, value];
}

/** Undefined if the person gave up half-way. */
async function askFields(fields: readonly Field[], asking: Asking): Promise<readonly Given[] | undefined> {
  const values: Given[] = [];
  for (const field of fields) {
    const value = await askField(field, asking);
    if (value === undefined) return undefined;
    values.push(value === "left out" ? undefined : [field.name, value.given]);
  }
  return values;
}

type Answered = { readonly given: FormValue } | "left out" | undefined;

async function askField(field: Field, asking: Asking): Promise<Answered> {
  if (field.kind === "many") return askMany(field, asking);
  if (field.kind !== "one" && field.kind !== "yes-no") return askText(field, asking);
  const options =
    field.kind === "one"
      ? field.options
      : [
          { value: "yes", label: "Yes" },
          { value: "no", label: "No" },
        ];
  const before = field.default === true ? "yes" : field.default === false ? "no" : field.default;
  const marked = options.map((option) =>
    option.value === before ? { ...option, description: "as it is now" } : option,
  );
  const skip = field.required ? [] : [{ value: leftOut, label: "(leave it out)" }];
  const chosen = await asking.choose(titleOf(field), [...marked, ...skip]);
  if (chosen === undefined) return undefined;
  if (chosen === leftOut) return "left out";
  return { given: field.kind === "yes-no" ? chosen === "yes" : chosen };
}

/** Stands for a field that is left out. No option of a server can have this value. */
const leftOut = "\0left out";
const done = "\0done";

async function askMany(field: Field, asking: Asking): Promise<Answered> {
  let chosen = new Set(Array.isArray(field.default) ? field.default : []);
  for (let problem = ""; ;) {
    const options = field.options.map(({ value, label }) => ({
      value,
      label: `${chosen.has(value) ? "[x]" : "[ ]"} ${label}`,
    }));
    const answer = await asking.choose(`${titleOf(field)}${problem}`, [...options, { value: done, label: "Done" }]);
    if (answer === undefined) return undefined;
    if (answer !== done) {
      chosen = new Set(chosen.has(answer) ? [...chosen].filter((value) => value !== answer) : [...chosen, answer]);
      continue;
    }
    if (chosen.size === 0 && !field.required) return "left out";
    const wrong = field.check([...chosen]);
    if (wrong === undefined) return { given: [...chosen] };
    problem = `\n  ! It takes ${wrong}.`;
  }
}

async function askText(field: Field, asking: Asking): Promise<Answered> {
  const before = field.default === undefined ? "" : ` [${toVisibleLine(String(field.default))}]`;
  for (let problem = ""; ;) {
    const line = await asking.write(`${titleOf(field)}${before}${problem}`);
    if (line === undefined) return undefined;
    if (line === "" && field.default !== undefined) return { given: field.default };
    if (line === "" && !field.required) return "left out";
    const value = field.kind === "number" ? (line.trim() === "" ? Number.NaN : Number(line)) : line;
    const wrong = field.check(value);
    if (wrong === undefined && line !== "") return { given: value };
    problem = `\n  ! It takes ${wrong ?? "something"}.`;
  }
}

function titleOf({ label, about, required }: Field): string {
  return `${label}${required ? "" : " (optional)"}${about === undefined ? "" : `: ${about}`}`;
}

async function confirm(server: string, given: readonly NonNullable<Given>[], asking: Asking): Promise<boolean> {
  const lines = given.map(([name, value]) =>
    toVisibleLine(`${name}: ${Array.isArray(value) ? value.join(", ") : value}`),
  );
  const words = `This goes to the MCP server '${server}':\n${toQuotedBlock(lines.join("\n"))}`;
  const answer = await asking.choose(words, [
    { value: "send", label: "Send" },
    { value: "no", label: "No" },
  ]);
  return answer === "send";
}
