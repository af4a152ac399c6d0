/** Questions in the form the protocol puts them, and what an answer is worth. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  type ClientCapabilities,
  type InputRequest,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { isObject } from "../base/json.ts";
import { toVisible, toVisibleCommand } from "../gate/show.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../index.ts";
import type { Elicitation } from "./host.ts";

/** Before 2025-11-25 there was only one kind of elicitation, and an empty object stood for it. */
export function canAsk(connection: ClientCapabilities | undefined, ctx: ServerContext): boolean {
  const envelope: Readonly<Record<string, unknown>> = { ...ctx.mcpReq.envelope };
  // The protocol library has checked the envelope; its type only forgets the key.
  const own = envelope[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
  const elicitation = (own ?? connection)?.elicitation;
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** Another server's question, passed on as it is, with its name. */
export function toQuestion(question: Elicitation): InputRequest {
  const message = `${question.server} asks: ${question.message}`;
  return question.mode === "url"
    ? inputRequired.elicitUrl({ message, url: question.url })
    : inputRequired.elicit({ message, requestedSchema: question.schema as unknown as FormSchema });
}

/** Checked against the specification's form grammar when it came in. */
type FormSchema = Parameters<typeof inputRequired.elicit>[0]["requestedSchema"];

export function toApproval({ call, reason, commands, diff }: ApprovalRequest): InputRequest {
  const lines = [
    `${call.tool} needs your approval: ${toVisible(reason)}`,
    ...commands.map((command) => `  $ ${toVisibleCommand(command)}`),
    `Arguments: ${toVisible(JSON.stringify(call.input))}`,
    ...(diff === undefined ? [] : [toVisible(diff)]),
  ];
  return inputRequired.elicit({
    message: lines.join("\n"),
    requestedSchema: {
      type: "object",
      properties: {
        answer: {
          type: "string",
          title: "Allow it?",
          description: "once: this call. session: the same again without asking. no: not at all.",
          enum: ["once", "session", "no"],
        },
        reason: { type: "string", title: "If not, why not?" },
      },
      required: ["answer"],
    },
  });
}

/** What came from the client is untrusted: only the two words that mean yes are a yes. */
export function toAnswer(response: unknown): ApprovalAnswer {
  const content = isObject(response) && response["action"] === "accept" ? response["content"] : undefined;
  const answer = isObject(content) ? content["answer"] : undefined;
  if (answer === "once" || answer === "session") return { answer };
  const message = isObject(content) ? content["reason"] : undefined;
  return { answer: "no", ...(typeof message === "string" && message !== "" ? { message } : {}) };
}
