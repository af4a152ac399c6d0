/**
 * Calls that MCP clients make: each goes down the engine's line, and its questions go back to the
 * client that made it.
 */
import { randomUUID } from "node:crypto";
import type { InputRequiredResult } from "@modelcontextprotocol/server";
import { isObject, defined, type JsonObject } from "../../base/json.ts";
import { CallError, type Conversation, type Ended, type CallEvent } from "../../index.ts";
import { createTurns, type Turn, type Turns } from "../../router/turns.ts";
import type { Asked, Permitted } from "../../spec/call.ts";
import type { ElicitingClient, ElicitingApprover } from "./eliciting-approver.ts";
import type { ElicitationAnswer } from "../host.ts";
import { canAsk, createClientAnswerer, toAnswer, toApproval, toQuestion, type ClientAnswerer } from "./questions.ts";
import {
  createMultiRound,
  isModern,
  type ElicitationChannel,
  type MultiRound,
  type ServedRequest,
} from "./multi-round.ts";

export interface ServedCallsOptions {
  /** The approver the engine was made with. Left out: nobody is asked. */
  readonly approver?: ElicitingApprover;
  readonly multiRound?: MultiRound;
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

/**
 * Calls of all clients of one engine. They change the same folder, so those that change something wait
 * for each other.
 */
export function createServedCalls({ approver, multiRound = createMultiRound() }: ServedCallsOptions): ServedCalls {
  const turns = createTurns();

  const run = async (
    asked: Asked,
    conversation: Conversation,
    channel: ElicitationChannel,
    stop: AbortSignal,
  ): Promise<Ended> => {
    const place = takePlace(turns, stop);
    const aside = {
      ...channel,
      put: (...questions) => place.aside(() => channel.put(...questions)),
    } satisfies typeof channel;
    const client = createElicitingClient(aside, channel);
    const endings = [approver?.register(asked.id, client), place.leave];
    try {
      const ended = await conversation.run(asked, stop, { beforeRun: place.enter, onEvent: tellClient(channel) });
      // A newer client is told which capability it lacks; an older one gets only the tool's own words.
      const lacked = ended.ok ? undefined : client.lacked();
      if (lacked !== undefined && isModern(channel.request())) throw lacked;
      return ended;
    } finally {
      for (const end of endings) end?.();
    }
  };

  return {
    serve: ({ name, input }, request, conversation) =>
      multiRound.serve({ ...request, key: `tools/call ${name}` }, (channel, stop) =>
        run(
          {
            id: `mcp_${randomUUID()}`,
            name,
            kind: "function",
            arguments: JSON.stringify(input ?? {}),
            askedAt: Date.now(),
          },
          conversation,
          channel,
          stop,
        ),
      ),
  };
}

/**
 * Other calls continue while a person is asked, except about a held run, which is decided before the
 * next one begins.
 */
function createElicitingClient(
  channel: ElicitationChannel,
  inPlace: ElicitationChannel,
): ElicitingClient & ClientAnswerer {
  return {
    ...createClientAnswerer(channel),
    async approve(request, signal) {
      if (!canAsk(channel.client, "form")) return undefined;
      const { put } = request.effects === undefined ? channel : inPlace;
      const responses = await put({ answer: toApproval(request) }, signal);
      return responses === undefined ? undefined : toAnswer(responses["answer"], request);
    },
    async elicit(question, signal) {
      if (!canAsk(channel.client, question.mode === "url" ? "page" : "form")) return undefined;
      const responses = await channel.put({ answer: toQuestion(question) }, signal);
      const { action, content } = { ...(responses?.["answer"] as Partial<ElicitationAnswer> | undefined) };
      if (action !== "accept") return { action: action === "cancel" ? "cancel" : "decline" };
      return { action, ...(isObject(content) ? { content } : {}) };
    },
  };
}

interface Place {
  /** Called when the call is permitted. Resolves when its turn has come. */
  enter(permitted: Permitted): Promise<void>;
  /** Gives the turn to others while a person is asked, and takes it again afterwards. */
  aside<Result>(wait: () => Promise<Result>): Promise<Result>;
  leave(): void;
}

/** A permitted call waits for its turn and keeps it until it has ended, except while it waits for a person's answer. */
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
      if (turn === undefined) await take(); // a second run with a wider grant still has the turn that the call took
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

const levels = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;

/** A listener for one call's events. It passes them to whichever request is serving the call at that moment. */
function tellClient(channel: ElicitationChannel): (event: CallEvent) => void {
  let steps = 0;
  const report = ({ progress: told }: Extract<CallEvent, { type: "call.progress" }>) => {
    const { mcpReq } = channel.request();
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined) return undefined;
    const { progress, total, message } = typeof told === "string" ? { message: told } : { ...told };
    steps = Math.max(steps + 1, progress ?? 0);
    return mcpReq.notify({
      method: "notifications/progress",
      params: {
        progressToken,
        progress: progress ?? steps,
        ...defined({ total, message }),
      },
    });
  };
  return (event) => {
    if (event.type !== "call.progress" && event.type !== "call.log") return;
    const sent =
      event.type === "call.progress"
        ? report(event)
        : channel.request().mcpReq.log(levels[event.level], toData(event.message, event.fields));
    sent?.catch(() => undefined); // a client that has gone needs to hear nothing
  };
}

function toData(message: string, fields: JsonObject | undefined): string | JsonObject {
  return fields === undefined ? message : { ...fields, message };
}
