/** Questions in the protocol's form, and how answers are checked. */
import {
  inputRequired,
  MissingRequiredClientCapabilityError,
  type ClientCapabilities,
  type InputRequest,
} from "@modelcontextprotocol/server";
import { defined, isObject } from "../../base/json.ts";
import { toVisible, toVisibleCommand, toVisibleLine } from "../../gate/show.ts";
import { chosenPaths } from "../../result/effects.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../../index.ts";
import {
  cannotAsk,
  type AnyAnswer,
  type Answerer,
  type Answers,
  type Question,
  type QuestionKind,
  type Questions,
} from "../../spec/question.ts";
import { toSchema } from "../../schema/schema.ts";
import type { Elicitation } from "../host.ts";
import type { ElicitationChannel, Responses } from "./multi-round.ts";

const required: Readonly<Record<QuestionKind, ClientCapabilities>> = {
  form: { elicitation: { form: {} } },
  page: { elicitation: { url: {} } },
  model: { sampling: {} },
  folders: { roots: {} },
};

/** Before 2025-11-25 there was only one kind of elicitation, written as an empty object. */
export function canAsk({ elicitation, sampling, roots }: ClientCapabilities, kind: QuestionKind): boolean {
  switch (kind) {
    case "form":
      return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
    case "page":
      return elicitation?.url !== undefined;
    case "model":
      return sampling !== undefined;
    case "folders":
      return roots !== undefined;
  }
}

export interface ClientAnswerer extends Answerer {
  /** The protocol's own error for a question to a client that did not declare the capability. */
  lacked(): Error | undefined;
}

/** The client that made a request answers what the work behind it asks. */
export function createClientAnswerer(channel: ElicitationChannel): ClientAnswerer {
  let lacked: Error | undefined;
  return {
    lacked: () => lacked,
    can: (_callId, kind) => canAsk(channel.client, kind),
    async answer({ questions }, signal) {
      const missing = Object.values(questions).flatMap(({ kind }) => (canAsk(channel.client, kind) ? [] : [kind]));
      if (missing.length === 0) return askClient(channel, questions, signal);
      const requiredCapabilities: ClientCapabilities = Object.assign({}, ...missing.map((kind) => required[kind]));
      lacked = new MissingRequiredClientCapabilityError({ requiredCapabilities });
      throw cannotAsk(missing);
    },
  };
}

/** How often something missing or invalid is asked for again before it counts as unanswered. */
const maxTries = 3;

async function askClient(
  channel: ElicitationChannel,
  questions: Questions,
  signal: AbortSignal,
): Promise<Answers | undefined> {
  const answers = new Map<string, AnyAnswer>();
  let responses = takeEarly(channel, Object.keys(questions));
  for (let tries = 0; tries <= maxTries; tries++) {
    for (const [name, question] of Object.entries(questions)) {
      const answer = Object.hasOwn(responses, name) ? await readAnswer(question, responses[name]) : undefined;
      if (answer !== undefined && !answers.has(name)) answers.set(name, answer);
    }
    const open = Object.entries(questions).filter(([name]) => !answers.has(name));
    if (open.length === 0) return Object.fromEntries(answers);
    const given = await channel.put(
      Object.fromEntries(open.map(([name, question]) => [name, toRequest(question)])),
      signal,
    );
    if (given === undefined) return undefined;
    responses = given;
  }
  return undefined;
}

function takeEarly({ early }: ElicitationChannel, names: readonly string[]): Responses {
  const taken = names.filter((name) => early.has(name)).map((name) => [name, early.get(name)] as const);
  for (const [name] of taken) early.delete(name);
  return Object.fromEntries(taken);
}

function toRequest(question: Question): InputRequest {
  switch (question.kind) {
    case "form":
      return inputRequired.elicit({
        message: question.message,
        requestedSchema: question.fields as unknown as FormSchema,
      });
    case "page":
      return inputRequired.elicitUrl({ message: question.message, url: question.url });
    case "model":
      return inputRequired.createMessage({
        messages: [{ role: "user", content: { type: "text", text: question.prompt } }],
        maxTokens: question.maxTokens,
        ...defined({ systemPrompt: question.system }),
      });
    case "folders":
      return inputRequired.listRoots();
  }
}

/** The client's answer is untrusted. Undefined if it does not answer this question. */
async function readAnswer(question: Question, response: unknown): Promise<AnyAnswer | undefined> {
  if (!isObject(response)) return undefined;
  switch (question.kind) {
    case "form":
    case "page": {
      const { action, content = {} } = response;
      if (action === "decline" || action === "cancel") return { action, content: {} };
      if (action !== "accept") return undefined;
      if (question.kind === "page") return { action };
      const checked = await toSchema(question.fields).validate(content);
      // Checked against the fields, which are flat.
      return checked.ok ? { action, content: content as FormContent } : undefined;
    }
    case "model": {
      const { model, stopReason, content } = response;
      const text = (Array.isArray(content) ? content : [content])
        .flatMap((part) => (isObject(part) && typeof part["text"] === "string" ? [part["text"]] : []))
        .join("\n");
      if (typeof model !== "string") return undefined;
      return { text, model, ...(typeof stopReason === "string" ? { stopReason } : {}) };
    }
    case "folders": {
      const { roots } = response;
      if (!Array.isArray(roots)) return undefined;
      return {
        folders: roots.flatMap((root) => {
          if (!isObject(root) || typeof root["uri"] !== "string") return [];
          return [{ uri: root["uri"], ...(typeof root["name"] === "string" ? { name: root["name"] } : {}) }];
        }),
      };
    }
  }
}

type FormContent = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Another server's question, passed on unchanged with that server's name. */
export function toQuestion(question: Elicitation): InputRequest {
  const message = `${question.server} asks: ${question.message}`;
  return question.mode === "url"
    ? inputRequired.elicitUrl({ message, url: question.url })
    : inputRequired.elicit({ message, requestedSchema: question.schema as unknown as FormSchema });
}

/** A JSON Schema object. The client refuses what its form grammar does not know. */
type FormSchema = Parameters<typeof inputRequired.elicit>[0]["requestedSchema"];

export function toApproval(request: ApprovalRequest): InputRequest {
  const { call, reason, commands, diff, effects } = request;
  const lines = [
    effects !== undefined
      ? `${call.tool} has run. Nothing of what it did is kept yet; keep it? Asked because: ${toVisible(reason)}`
      : `${call.tool} needs your approval: ${toVisible(reason)}`,
    ...commands.map((command) => `  $ ${toVisibleCommand(command)}`),
    `Arguments: ${toVisible(JSON.stringify(call.input))}`,
    ...(effects?.lines ?? []).map(({ mark, text }, at) => `  ${at + 1} ${mark} ${toVisibleLine(text)}`),
    ...(diff === undefined ? [] : [toVisible(diff)]),
  ];
  return inputRequired.elicit({
    message: lines.join("\n"),
    requestedSchema: {
      type: "object",
      properties: { ...answerFields(request), reason: { type: "string", title: "If not, why not?" } },
      required: ["answer"],
    },
  });
}

interface TextField {
  readonly type: "string";
  readonly title: string;
  readonly description: string;
  readonly enum?: string[];
}

function answerFields({ effects }: ApprovalRequest): Record<string, TextField> {
  if (effects === undefined)
    return {
      answer: {
        type: "string",
        title: "Allow it?",
        description: "once: this call. session: the same again without asking. no: not at all.",
        enum: ["once", "session", "no"],
      },
    };
  const direct =
    effects.direct === undefined
      ? ""
      : ` direct: drop it and run it again without holding it, because ${effects.direct}.`;
  return {
    answer: {
      type: "string",
      title: "Keep it?",
      description: `once: keep what it did. session: keep it, and changes in the same folders without asking. no: drop it.${direct}`,
      enum: ["once", "session", ...(effects.direct === undefined ? [] : ["direct"]), "no"],
    },
    lines: {
      type: "string",
      title: "Keep only these lines",
      description: "Numbers, such as 1 3-5. Empty: all of them.",
    },
  };
}

/** The client's answer is untrusted: only a word that was offered counts, and what cannot be read means no. */
export function toAnswer(response: unknown, { effects }: Pick<ApprovalRequest, "effects">): ApprovalAnswer {
  const content = isObject(response) && response["action"] === "accept" ? response["content"] : undefined;
  const { answer, lines, reason } = isObject(content) ? content : {};
  if (answer === "direct" && effects?.direct !== undefined) return { answer };
  if (answer === "once" || answer === "session") {
    if (effects === undefined || lines === undefined || lines === "") return { answer };
    const keep = typeof lines === "string" ? chosenPaths(lines.trim().split(/[\s,]+/), effects.lines) : undefined;
    return keep === undefined ? { answer: "no", message: "the lines to keep could not be read" } : { answer, keep };
  }
  return { answer: "no", ...(typeof reason === "string" && reason !== "" ? { message: reason } : {}) };
}
