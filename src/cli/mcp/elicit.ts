/** What servers ask, answered by whoever is there: a person, an approver, or nobody. */
import { defined, isObject, type JsonObject } from "../../base/json.ts";
import { toVisibleLine } from "../../gate/show.ts";
import type { Elicitation, ElicitationAnswer, McpHost } from "../../mcp/index.ts";
import type { Engine } from "../../router/engine.ts";
import type { Question } from "../../spec/question.ts";
import type { Approver } from "../../spec/stages.ts";
import { askPerson } from "./ask.ts";
import { openBrowser } from "../open-browser.ts";
import type { Person } from "../chat/person.ts";

export interface ElicitOptions {
  readonly engine: Engine;
  /** The person to talk to, if there is one. */
  readonly person?: Person | undefined;
  /** Asked for a yes or no if there is no person to talk to. */
  readonly approver?: Approver | undefined;
  readonly warn: (message: string) => void;
  readonly openPage?: (url: URL) => void;
}

/** A server that was told no this often is not listened to again. */
const maxRefusals = 3;

/** Answers what servers ask: by the person, by whoever approves calls, or with no and the reason. */
export function createElicit(options: ElicitOptions): NonNullable<McpHost["elicit"]> {
  const { person, approver, warn, openPage = openBrowser } = options;
  const refusals = new Map<string, number>();
  const askApprover = createYesOrNo(options);
  return async (question, signal) => {
    const { server, message } = question;
    const refused = refusals.get(server) ?? 0;
    if (refused >= maxRefusals) return { action: "decline" };
    const answer = person
      ? await person.converse((asking) => askPerson(question, asking, { openPage }), signal)
      : approver &&
        ((await askAnswerer(question, approver, signal)) ?? (await askApprover(question, approver, signal)));
    if (signal.aborted) return { action: "cancel" };
    if (answer === undefined)
      warn(`the MCP server '${server}' was told no: nobody can be asked here (it asked: ${toVisibleLine(message)})`);
    const { action, content } = answer ?? { action: "decline" as const };
    if (action !== "accept") refusals.set(server, refused + 1);
    return { action, ...defined({ content }) };
  };
}

/** Whoever approves calls may also fill in forms (an editor's person). Undefined if they cannot. */
async function askAnswerer(
  question: Elicitation,
  { answerer }: Approver,
  signal: AbortSignal,
): Promise<ElicitationAnswer | undefined> {
  const { server, message, mode } = question;
  const call = { id: `elicitation_${server}`, tool: `${server}/(question)` };
  const asked: Question =
    mode === "form" ? { kind: "form", message, fields: question.schema } : { kind: "page", message, url: question.url };
  if (answerer?.can(call.id, asked.kind) !== true) return undefined;
  const given = (await answerer.answer({ call, questions: { question: asked } }, signal))?.["question"];
  if (given === undefined || !("action" in given)) return { action: "cancel" };
  const { action } = given;
  if (action !== "accept" || !("content" in given)) return { action };
  const fields = Object.entries(given.content).map(([name, value]) => [
    name,
    typeof value === "object" ? [...value] : value,
  ]);
  return { action, content: Object.fromEntries(fields) };
}

/**
 * For approvers that only say yes or no: an address to open, or a form that can be sent as it is. A
 * form that somebody would have to fill in is declined, with a message.
 */
function createYesOrNo({ engine, warn }: ElicitOptions) {
  let count = 0;
  return async (
    question: Elicitation,
    approver: Approver,
    signal: AbortSignal,
  ): Promise<ElicitationAnswer | undefined> => {
    const filled = question.mode === "form" ? fill(question.schema) : {};
    if (filled === undefined) {
      warn(`the MCP server '${question.server}' asked for values that cannot be given here: ${question.message}`);
      return { action: "decline" };
    }
    const id = `elicitation_${++count}`;
    const answer = await approver.ask(
      {
        call: { id, tool: `${question.server}/(question)`, input: question.mode === "url" ? question.url : filled },
        reason: wordsOf(question),
        access: {},
        grant: engine.gate.baseGrant(),
        commands: [],
        hash: id,
      },
      signal,
    );
    if (answer === undefined || answer === "later") return undefined;
    if (answer.answer === "no" || answer.answer === "stop" || answer.answer === "direct") return { action: "decline" };
    return { action: "accept", ...(question.mode === "form" ? { content: filled } : {}) };
  };
}

function wordsOf(question: Elicitation): string {
  return question.mode === "url"
    ? `the server asks you to open ${toVisibleLine(question.url)} in a browser: ${question.message}`
    : question.message;
}

/**
 * The values that a form already has. Undefined if a required one is missing. For a single yes-or-no
 * field, the answer itself is the value.
 */
function fill(schema: JsonObject): ElicitationAnswer["content"] {
  const properties = Object.entries(isObject(schema["properties"]) ? schema["properties"] : {});
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const values: [string, string | number | boolean][] = [];
  for (const [name, property] of properties) {
    const value = isObject(property) ? property["default"] : undefined;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      values.push([name, value]);
    else if (isObject(property) && property["type"] === "boolean" && required.length === 1) values.push([name, true]);
    else if (required.includes(name)) return undefined;
  }
  return Object.fromEntries(values);
}
