/** Who answers in an editor: its person, through permissions and forms. */
import { methods, type AgentContext, type ClientCapabilities } from "@agentclientprotocol/sdk";
import type { Answers, QuestionRequest } from "../spec/question.ts";
import type { Approver } from "../spec/stages.ts";
import { permissionCall, permissionOptions, readPermission } from "./permission.ts";

/** The editor asks its person. A turn that is cancelled in the meantime waits for nobody. */
export function createApprover(
  to: AgentContext,
  sessionId: () => string,
  cwd: string,
  client: () => ClientCapabilities,
): Approver {
  const canAsk = (kind: "form" | "url") => {
    const { elicitation } = client();
    return elicitation?.[kind] !== undefined && elicitation[kind] !== null;
  };
  return {
    async ask(request, signal) {
      const asked = to.request(methods.client.session.requestPermission, {
        sessionId: sessionId(),
        toolCall: permissionCall(request, cwd),
        options: permissionOptions(request),
      });
      const answer = await unlessStopped(
        asked.catch(() => undefined),
        signal,
      );
      return answer && readPermission(answer, request);
    },
    answerer: {
      can: (_callId, kind) => (kind === "form" ? canAsk("form") : kind === "page" && canAsk("url")),
      answer: (asked, signal) => unlessStopped(elicit(to, sessionId(), asked), signal),
    },
  };
}

/** The answer, or undefined as soon as nobody waits for it any more. */
async function unlessStopped<Answer>(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer | undefined> {
  let stop = (): void => undefined;
  const stopped = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([answer, stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
    answer.catch(() => undefined); // what the editor says now is of no use
  }
}

/** What tools ask on their own, one form or page after another. */
async function elicit(
  to: AgentContext,
  sessionId: string,
  { call, questions }: QuestionRequest,
): Promise<Answers | undefined> {
  const answers: Record<string, Answers[string]> = {};
  for (const [name, question] of Object.entries(questions)) {
    if (question.kind !== "form" && question.kind !== "page") return undefined;
    const { message } = question;
    const scope = { sessionId, toolCallId: call.id, message };
    const answer: { action: string; content?: unknown } = await to.request<{ action: string; content?: unknown }>(
      methods.client.elicitation.create,
      question.kind === "form"
        ? { ...scope, mode: "form", requestedSchema: question.fields }
        : { ...scope, mode: "url", url: question.url, elicitationId: `${call.id}:${name}` },
    );
    const action = answer.action === "accept" || answer.action === "decline" ? answer.action : "cancel";
    // Checked against the fields by whoever asked.
    const content = (action === "accept" ? (answer.content ?? {}) : {}) as Record<string, string>;
    answers[name] = question.kind === "form" ? { action, content } : { action };
  }
  return answers;
}
