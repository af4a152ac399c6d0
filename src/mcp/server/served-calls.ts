/** Calls that MCP clients make of us: each down the engine's line, its questions back to the client that made it. */
import { randomUUID } from "node:crypto";
import type { InputRequiredResult } from "@modelcontextprotocol/server";
import { isObject } from "../../base/json.ts";
import { CallError, type Conversation, type Ended } from "../../index.ts";
import { createTurns, type Turn, type Turns } from "../../router/turns.ts";
import type { Asked, Permitted } from "../../spec/call.ts";
import { tellClient } from "./call-notices.ts";
import type { Attendant, ElicitingApprover } from "./eliciting-approver.ts";
import type { ElicitationAnswer } from "../host.ts";
import { canAsk, createClientAnswerer, toAnswer, toApproval, toQuestion, type ClientAnswerer } from "./questions.ts";
import { createRounds, isModern, type Desk, type Rounds, type ServedRequest } from "./rounds.ts";

export interface ServedCallsOptions {
  /** The approver the engine was made with. Left out: nobody is asked. */
  readonly approver?: ElicitingApprover;
  readonly rounds?: Rounds;
}

export interface ServedCalls {
  /** Starts a call, or goes on with the one whose question this request answers. */
  serve(
    call: { readonly name: string; readonly input: unknown },
    request: Omit<ServedRequest, "key">,
    conversation: Conversation,
  ): Promise<Served>;
}

export type Served = { readonly done: Ended } | { readonly asks: InputRequiredResult };

/** Calls of all clients of one engine: they change the same folder, so those that change something wait for each other. */
export function createServedCalls({ approver, rounds = createRounds() }: ServedCallsOptions): ServedCalls {
  const turns = createTurns();

  const run = async (asked: Asked, conversation: Conversation, desk: Desk, stop: AbortSignal): Promise<Ended> => {
    const place = takePlace(turns, stop);
    const attendant = createAttendant({ ...desk, put: (...questions) => place.aside(() => desk.put(...questions)) });
    const endings = [approver?.attend(asked.id, attendant), place.leave];
    try {
      const ended = await conversation.run(asked, stop, { beforeRun: place.enter, onEvent: tellClient(desk) });
      // A newer client is told what it would have to offer; an older one has only the tool's own words.
      const lacked = ended.ok ? undefined : attendant.lacked();
      if (lacked !== undefined && isModern(desk.request())) throw lacked;
      return ended;
    } finally {
      for (const end of endings) end?.();
    }
  };

  return {
    serve: ({ name, input }, request, conversation) =>
      rounds.serve({ ...request, key: `tools/call ${name}` }, (desk, stop) =>
        run(
          {
            id: `mcp_${randomUUID()}`,
            name,
            kind: "function",
            arguments: JSON.stringify(input ?? {}),
            askedAt: Date.now(),
          },
          conversation,
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

interface Place {
  /** Once the call is permitted: resolves when its turn has come. */
  enter(permitted: Permitted): Promise<void>;
  /** Nobody else waits while somebody is asked. */
  aside<Result>(wait: () => Promise<Result>): Promise<Result>;
  leave(): void;
}

/** A call waits for its turn once it is permitted, and has it until it ended, but for the time it spends asking. */
function takePlace(turns: Turns, stop: AbortSignal): Place {
  let turn: Turn | undefined;
  let alone = false;
  let left = false;
  let asides: Promise<unknown> = Promise.resolve();
  const take = async () => {
    turn = turns.take(alone);
    await Promise.race([turn.come, whenAborted(stop)]);
  };
  return {
    async enter({ mutates }) {
      alone = mutates;
      if (turn === undefined) await take(); // run again with a wider grant, the call still has the turn it took
    },
    aside(wait) {
      if (turn === undefined) return wait();
      const result = asides.then(async () => {
        turn?.end();
        const waited = await wait();
        if (!left) await take(); // a call may end before its question does
        return waited;
      });
      asides = result.catch(() => undefined); // one at a time: each leaves its turn and takes another
      return result;
    },
    leave() {
      left = true;
      turn?.end();
    },
  };
}

function whenAborted(stop: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = () => reject(new CallError("aborted", "The call was interrupted before it began."));
    if (stop.aborted) give();
    stop.addEventListener("abort", give, { once: true });
  });
}
