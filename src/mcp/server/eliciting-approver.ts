import type { Approver } from "../../index.ts";
import type { Answerer } from "../../spec/question.ts";
import type { McpHost } from "../host.ts";

/** Who answers for the client that made a call. */
export interface Attendant extends Answerer {
  readonly approve: Approver["ask"];
  readonly elicit: NonNullable<McpHost["elicit"]>;
}

/** An engine's approver for calls that come from MCP clients: each question goes to the client that made the call. */
export interface ElicitingApprover extends Approver {
  /** Until the returned function is called, this call's questions go to `attendant`. */
  attend(callId: string, attendant: Attendant): () => void;
  /** The same for what other servers ask while they serve such a call. */
  readonly elicit: NonNullable<McpHost["elicit"]>;
  readonly answerer: Answerer;
}

export function createElicitingApprover(): ElicitingApprover {
  const attended = new Map<string, Attendant>();
  return {
    attend(callId, attendant) {
      attended.set(callId, attendant);
      return () => attended.delete(callId);
    },
    ask: async (request, signal) => attended.get(request.call.id)?.approve(request, signal),
    elicit: async (question, signal) => attended.get(question.callId ?? "")?.elicit(question, signal),
    answerer: {
      can: (callId, kind) => attended.get(callId)?.can(callId, kind) ?? false,
      answer: async (asked, signal) => attended.get(asked.call.id)?.answer(asked, signal),
    },
  };
}
