/** Who answers in an editor: its person, through permissions and forms. */
import {
  methods,
  type AgentContext,
  type ClientCapabilities,
  type PermissionOption,
  type RequestPermissionResponse,
  type ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { toVisibleCommand, toVisibleLine } from "../gate/show.ts";
import type { Answers, QuestionRequest } from "../spec/question.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../spec/stages.ts";
import { describeCall, diffContent, textContent } from "./describe.ts";

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

/** A question of the gate as an editor shows it: the command, the reason and the diff come first. */
function permissionCall(request: ApprovalRequest, cwd: string): ToolCallUpdate {
  const { call, commands, reason, diff, effects } = request;
  const { title, kind, locations } = describeCall(call.tool, JSON.stringify(call.input) ?? "", cwd);
  // A line break or an escape in a word could end the block that it is shown in.
  const lines = commands.map(toVisibleCommand);
  const did = (effects?.lines ?? []).map(({ mark, text }) => `${mark} ${toVisibleLine(text)}`);
  const held = did.length === 0 ? [] : [`It has run. Nothing of this is kept yet:\n\`\`\`\n${did.join("\n")}\n\`\`\``];
  const shown = [
    toVisibleLine(reason),
    ...(lines.length === 0 ? [] : [`\`\`\`sh\n${lines.join("\n")}\n\`\`\``]),
    ...held,
  ].join("\n\n");
  return {
    toolCallId: call.id,
    title,
    kind,
    locations,
    status: "pending",
    rawInput: call.input,
    content: [textContent(shown), ...(diff === undefined ? [] : diffContent(diff, cwd))],
  };
}

/** 'Always' says which rule it saves: it is for this command, and never for the whole tool. */
function permissionOptions({ always, effects }: ApprovalRequest): PermissionOption[] {
  const isHeld = effects !== undefined;
  return [
    { optionId: "once", name: isHeld ? "Keep what it did" : "Yes, this once", kind: "allow_once" },
    { optionId: "session", name: "Yes, for this session", kind: "allow_always" },
    ...(always === undefined
      ? []
      : [
          {
            optionId: "always",
            name: `Always (${always.rule})${always.alsoAllows === "" ? "" : `; also allows ${always.alsoAllows}`}`,
            kind: "allow_always" as const,
          },
        ]),
    ...(effects?.direct === undefined
      ? []
      : [{ optionId: "direct", name: `Run it again directly (${effects.direct})`, kind: "allow_once" as const }]),
    { optionId: "no", name: isHeld ? "Drop it" : "No", kind: "reject_once" },
    { optionId: "stop", name: "No, and stop", kind: "reject_once" },
  ];
}

/** Only an option that was offered counts. An editor that cancels has stopped the turn. */
function readPermission({ outcome }: RequestPermissionResponse, request: ApprovalRequest): ApprovalAnswer {
  if (outcome.outcome !== "selected") return { answer: "stop" };
  const chosen = permissionOptions(request).find(({ optionId }) => optionId === outcome.optionId)?.optionId;
  return chosen === "once" || chosen === "session" || chosen === "always" || chosen === "direct" || chosen === "stop"
    ? { answer: chosen }
    : { answer: "no" };
}
