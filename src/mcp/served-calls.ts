/** Calls that MCP clients make of us: each down the engine's line, its questions back to the client that made it. */
import { randomUUID } from "node:crypto";
import type { InputRequiredResult } from "@modelcontextprotocol/server";
import { isObject } from "../base/json.ts";
import { CallError, type Ended, type Engine } from "../index.ts";
import { createTurns, type Turn, type Turns } from "../router/turns.ts";
import type { Asked } from "../spec/call.ts";
import type { Recorder } from "../spec/stages.ts";
import { followCall } from "./call-notices.ts";
import type { Attendant, ElicitingApprover } from "./eliciting-approver.ts";
import type { ElicitationAnswer } from "./host.ts";
import { canAsk, createClientAnswerer, toAnswer, toApproval, toQuestion, type ClientAnswerer } from "./questions.ts";
import { createRounds, isModern, type Desk, type Rounds, type ServedRequest } from "./rounds.ts";

export interface ServedCallsOptions {
  readonly engine: Engine;
  /** The approver the engine was made with. Left out: nobody is asked. */
  readonly approver?: ElicitingApprover;
  readonly rounds?: Rounds;
}

export interface ServedCalls {
  /** Starts a call, or goes on with the one whose question this request answers. */
  serve(call: { readonly name: string; readonly input: unknown }, request: Omit<ServedRequest, "key">): Promise<Served>;
}

export type Served = { readonly done: Ended } | { readonly asks: InputRequiredResult };

export function createServedCalls({ engine, approver, rounds = createRounds() }: ServedCallsOptions): ServedCalls {
  const turns = createTurns();

  const run = async (asked: Asked, desk: Desk, stop: AbortSignal): Promise<Ended> => {
    const attendant = createAttendant(desk);
    const place = takePlace(turns, stop);
    const endings = [followCall(engine, asked.id, desk), approver?.attend(asked.id, attendant), place.leave];
    try {
      const ended = await engine.run(asked, stop, place);
      // A newer client is told what it would have to offer; an older one has only the tool's own words.
      const lacked = ended.ok ? undefined : attendant.lacked();
      if (lacked !== undefined && isModern(desk.request())) throw lacked;
      return ended;
    } finally {
      for (const end of endings) end?.();
    }
  };

  return {
    serve: ({ name, input }, request) =>
      rounds.serve({ ...request, key: `tools/call ${name}` }, (desk, stop) =>
        run(
          {
            id: `mcp_${randomUUID()}`,
            name,
            kind: "function",
            arguments: JSON.stringify(input ?? {}),
            askedAt: Date.now(),
          },
          desk,
          stop,
        ),
      ),
  };
}

function createAttendant(desk: Desk): Attendant & ClientAnswerer {
  return {
    ...createClientAnswerer(desk),
    async approve(request, signal) {
      if (!canAsk(desk.client, "form")) return undefined;
      const responses = await desk.put({ answer: toApproval(request) }, signal);
      return responses === undefined ? undefined : toAnswer(responses["answer"]);
    },
    async elicit(question, signal) {
      if (!canAsk(desk.client, question.mode === "url" ? "page" : "form")) return undefined;
      const responses = await desk.put({ answer: toQuestion(question) }, signal);
      const { action, content } = { ...(responses?.["answer"] as Partial<ElicitationAnswer> | undefined) };
      if (action !== "accept") return { action: action === "cancel" ? "cancel" : "decline" };
      return { action, ...(isObject(content) ? { content } : {}) };
    },
  };
}

/** A call waits for its turn once it is permitted: nobody else waits while a person is asked about it. */
function takePlace(turns: Turns, stop: AbortSignal): Recorder & { leave(): void } {
  let turn: Turn | undefined;
  return {
    async started({ mutates }) {
      if (turn !== undefined) return; // the same call again, with more: it still has its turn
      turn = turns.take(mutates);
      await Promise.race([turn.come, whenAborted(stop)]);
    },
    ended: async () => undefined,
    leave: () => turn?.end(),
  };
}

function whenAborted(stop: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = () => reject(new CallError("aborted", "The call was interrupted before it began."));
    if (stop.aborted) give();
    stop.addEventListener("abort", give, { once: true });
  });
}
