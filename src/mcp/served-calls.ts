/**
 * Calls that MCP clients make of us. A call that must ask the person behind its client waits where it
 * is; the request that brings the answer goes on with the same run, so that nothing ever runs twice.
 */
import { randomBytes, randomUUID } from "node:crypto";
import {
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type ClientCapabilities,
  type InputRequest,
  type InputRequiredResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Asked } from "../spec/call.ts";
import { isObject } from "../base/json.ts";
import type { Approver, Ended, Engine } from "../index.ts";
import type { ElicitationAnswer, McpHost } from "./host.ts";
import { canAsk, toAnswer, toApproval, toQuestion } from "./questions.ts";

/** Who asks the person behind the client that made a call. */
export interface Desk {
  readonly approve: Approver["ask"];
  readonly elicit: NonNullable<McpHost["elicit"]>;
}

/** An engine's approver for calls that come from MCP clients: each question goes to the client that made the call. */
export interface ElicitingApprover extends Approver {
  /** Until the returned function is called, this call's questions go to `desk`. */
  attend(callId: string, desk: Desk): () => void;
  /** The same for what other servers ask while they serve such a call. */
  readonly elicit: NonNullable<McpHost["elicit"]>;
}

export function createElicitingApprover(): ElicitingApprover {
  const attended = new Map<string, Desk>();
  return {
    attend(callId, desk) {
      attended.set(callId, desk);
      return () => attended.delete(callId);
    },
    ask: async (request, signal) => attended.get(request.call.id)?.approve(request, signal),
    elicit: async (question, signal) => attended.get(question.callId ?? "")?.elicit(question, signal),
  };
}

export interface ServedCallsOptions {
  readonly engine: Engine;
  /** The approver the engine was made with. Left out: nobody is asked. */
  readonly approver?: ElicitingApprover;
  /** How long a person may take. */
  readonly patienceMs?: number;
}

export interface ServedCalls {
  /** Starts a call, or goes on with the one whose question this request answers. */
  serve(request: CallRequest, ctx: ServerContext): Promise<Served>;
}

export type Served = { readonly ended: Ended } | { readonly asks: InputRequiredResult };

export interface CallRequest {
  readonly name: string;
  readonly input: unknown;
  /** What the client can do, where the connection said it once for all. */
  readonly client: ClientCapabilities | undefined;
}

interface Running {
  ctx: ServerContext;
  readonly ended: Promise<Ended>;
  readonly stop: AbortController;
  /** The open question, in the protocol's own form. */
  question: InputRequest | undefined;
  /** Takes what the client answered; undefined: nothing. */
  answer: ((response: unknown) => void) | undefined;
  /** Called when there is a question. */
  asked: () => void;
}

const defaultPatienceMs = 10 * 60_000;
/** Questions left unanswered at the same time; the oldest is then taken as unanswered. */
const maxParked = 256;

export function createServedCalls(options: ServedCallsOptions): ServedCalls {
  const { engine, approver, patienceMs = defaultPatienceMs } = options;
  const parked = new Map<string, Running>();

  const start = (request: CallRequest, ctx: ServerContext): Running => {
    const id = `mcp_${randomUUID()}`;
    const stop = new AbortController();
    const running: Running = {
      ctx,
      stop,
      ended: Promise.resolve().then(() => engine.run(toAsked(id, request), stop.signal)),
      question: undefined,
      answer: undefined,
      asked: () => undefined,
    };
    const endings = [forwardProgress(engine, id, running)];
    if (approver && canAsk(request.client, ctx)) endings.push(approver.attend(id, createDesk(running, patienceMs)));
    void running.ended.finally(() => endings.forEach((end) => end())).catch(() => undefined);
    return running;
  };

  const resume = (state: string, ctx: ServerContext): Running => {
    const running = parked.get(state);
    if (running === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "the question was answered already, or too late");
    parked.delete(state);
    running.ctx = ctx;
    running.answer?.(ctx.mcpReq.inputResponses?.["answer"]);
    return running;
  };

  const park = (running: Running, question: InputRequest): InputRequiredResult => {
    const state = randomBytes(24).toString("base64url");
    parked.set(state, running);
    for (const [oldest, { answer }] of parked) {
      if (parked.size <= maxParked) break;
      parked.delete(oldest);
      answer?.(undefined);
    }
    void running.ended.finally(() => parked.delete(state)).catch(() => undefined);
    return inputRequired({ inputRequests: { answer: question }, requestState: state });
  };

  return {
    async serve(request, ctx) {
      const state = ctx.mcpReq.requestState<string>();
      const running = state === undefined ? start(request, ctx) : resume(state, ctx);
      const unlink = stopWith(ctx.mcpReq.signal, running.stop);
      const asked = new Promise<undefined>((resolve) => (running.asked = () => resolve(undefined)));
      const ended = running.question === undefined ? await Promise.race([running.ended, asked]) : undefined;
      if (ended !== undefined) {
        unlink();
        return { ended };
      }
      // Older clients are asked while their request is open, and may take it back; newer ones come again with the answer.
      if (isModern(ctx)) unlink();
      return { asks: park(running, running.question!) };
    },
  };
}

function toAsked(id: string, { name, input }: CallRequest): Asked {
  return { id, name, kind: "function", arguments: JSON.stringify(input ?? {}), askedAt: Date.now() };
}

function createDesk(running: Running, patienceMs: number): Desk {
  const ask = (question: InputRequest, signal: AbortSignal) => waitForAnswer(running, question, signal, patienceMs);
  return {
    async approve(request, signal) {
      const response = await ask(toApproval(request), signal);
      return response === undefined ? undefined : toAnswer(response);
    },
    async elicit(question, signal) {
      const { action, content } = { ...((await ask(toQuestion(question), signal)) as Partial<ElicitationAnswer>) };
      if (action !== "accept") return { action: action === "cancel" ? "cancel" : "decline" };
      return { action, ...(isObject(content) ? { content } : {}) };
    },
  };
}

/** One question at a time: a second one while the first is open is not put, and so not answered. */
function waitForAnswer(
  running: Running,
  question: InputRequest,
  signal: AbortSignal,
  patienceMs: number,
): Promise<unknown> {
  if (running.question !== undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const settle = (response: unknown) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      running.question = undefined;
      running.answer = undefined;
      resolve(response);
    };
    const giveUp = () => settle(undefined);
    const timer = setTimeout(giveUp, patienceMs);
    timer.unref();
    signal.addEventListener("abort", giveUp);
    running.question = question;
    running.answer = settle;
    running.asked();
  });
}

function stopWith(signal: AbortSignal, stop: AbortController): () => void {
  const cancel = () => stop.abort();
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  return () => signal.removeEventListener("abort", cancel);
}

function isModern(ctx: ServerContext): boolean {
  return ctx.mcpReq.envelope !== undefined;
}

/** To whichever request the call is being served by at that moment. */
function forwardProgress(engine: Engine, id: string, running: Running): () => void {
  let steps = 0;
  return engine.on((event) => {
    const token = running.ctx.mcpReq._meta?.progressToken;
    if (event.type !== "call.progress" || event.id !== id || token === undefined) return;
    const said = typeof event.progress === "string" ? { message: event.progress } : event.progress;
    steps = Math.max(steps + 1, said.progress ?? 0);
    void running.ctx.mcpReq
      .notify({
        method: "notifications/progress",
        params: {
          progressToken: token,
          progress: said.progress ?? steps,
          ...(said.total === undefined ? {} : { total: said.total }),
          ...(said.message === undefined ? {} : { message: said.message }),
        },
      })
      .catch(() => undefined); // a client that has gone needs no progress
  });
}
