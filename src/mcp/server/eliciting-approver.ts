import type { Approver } from "../../index.ts";
import type { Answerer } from "../../spec/question.ts";
import type { McpHost } from "../host.ts";

/** The MCP client behind a call: it approves and answers for the person who uses it. */
export interface ElicitingClient extends Answerer {
  readonly approve: Approver["ask"];
  readonly elicit: NonNullable<McpHost["elicit"]>;
}

/** An engine's approver for calls from MCP clients. Each question goes to the client that made the call. */
export interface ElicitingApprover extends Approver {
  /** Until the returned function is called, the questions of this call go to `client`. */
  register(callId: string, client: ElicitingClient): () => void;
  /** The same for what other servers ask while they serve such a call. */
  readonly elicit: NonNullable<McpHost["elicit"]>;
  readonly answerer: Answerer;
}

/** An approver that asks the client which made the call, by elicitation. */
export function createElicitingApprover(): ElicitingApprover {
  const clients = new Map<string, ElicitingClient>();
  return {
    register(callId, client) {
      clients.set(callId, client);
      return () => clients.delete(callId);
    },
    ask: async (request, signal) => clients.get(request.call.id)?.approve(request, signal),
    elicit: async (question, signal) => clients.get(question.callId ?? "")?.elicit(question, signal),
    answerer: {
      can: (callId, kind) => clients.get(callId)?.can(callId, kind) ?? false,
      answer: async (asked, signal) => clients.get(asked.call.id)?.answer(asked, signal),
    },
  };
}
