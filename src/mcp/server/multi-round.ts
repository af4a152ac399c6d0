/**
 * Multi-round requests: requests that may have to ask their client something before they are answered.
 * A client of an older protocol version is asked while its request is open. A newer one gets the
 * questions as the answer, and sends the request again with its replies. The work waits in the
 * meantime and continues where it stopped, so that nothing runs twice.
 */
import { randomBytes, randomUUID } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type ClientCapabilities,
  type InputRequest,
  type InputRequiredResult,
  type ServerContext,
} from "@modelcontextprotocol/server";

export type Responses = Readonly<Record<string, unknown>>;

/** The connection to the client that made a request: questions go out and answers come back. */
export interface ElicitationChannel {
  /** The request that is being served at this moment, to which progress and log lines belong. */
  request(): ServerContext;
  readonly client: ClientCapabilities;
  /** Asks questions together, after those that are already open. Undefined if no answer came. */
  put(questions: Readonly<Record<string, InputRequest>>, signal: AbortSignal): Promise<Responses | undefined>;
  /** What the client answered before it was asked. Each answer is used for one question. */
  readonly early: Map<string, unknown>;
}

export interface ServedRequest {
  /** What the request asks for. An answer must come back with the same key. */
  readonly key: string;
  /** What the client can do, if the connection stated it once for all. */
  readonly client: ClientCapabilities | undefined;
  readonly ctx: ServerContext;
}

export type RoundResult<Result> = { readonly done: Result } | { readonly asks: InputRequiredResult };

export interface MultiRound {
  /** Starts the work, or continues the one whose questions this request answers. */
  serve<Result>(
    request: ServedRequest,
    work: (channel: ElicitationChannel, stop: AbortSignal) => Promise<Result>,
  ): Promise<RoundResult<Result>>;
}

export interface MultiRoundOptions {
  /** How long a person may take to answer. */
  readonly answerTimeoutMs?: number;
}

interface Running {
  readonly key: string;
  ctx: ServerContext;
  readonly done: Promise<unknown>;
  readonly stop: AbortController;
  /** What is being asked, and who takes the answers. Undefined if nothing is. */
  open: { readonly questions: Record<string, InputRequest>; take(responses: Responses | undefined): void } | undefined;
  /** Called when there is a question. */
  asked: () => void;
}

const defaultAnswerTimeoutMs = 10 * 60_000;
/** How many requests may wait for answers at the same time. Beyond that, the oldest counts as unanswered. */
const maxWaiting = 256;

export function createMultiRound({ answerTimeoutMs = defaultAnswerTimeoutMs }: MultiRoundOptions = {}): MultiRound {
  const waiting = new Map<string, Running>();

  const resume = (state: string, { key, ctx }: ServedRequest): Running => {
    const running = waiting.get(state);
    if (running === undefined || running.key !== key)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "the question was answered already, or too late");
    waiting.delete(state);
    running.ctx = ctx;
    running.open?.take(ctx.mcpReq.inputResponses ?? {});
    return running;
  };

  const keepWaiting = (running: Running, inputRequests: Record<string, InputRequest>): InputRequiredResult => {
    const requestState = randomBytes(24).toString("base64url");
    waiting.set(requestState, running);
    for (const [oldest, { open }] of waiting) {
      if (waiting.size <= maxWaiting) break;
      waiting.delete(oldest);
      open?.take(undefined);
    }
    void running.done.finally(() => waiting.delete(requestState)).catch(() => undefined);
    return inputRequired({ inputRequests, requestState });
  };

  return {
    async serve<Result>(
      request: ServedRequest,
      work: (channel: ElicitationChannel, stop: AbortSignal) => Promise<Result>,
    ) {
      const { ctx } = request;
      const state = ctx.mcpReq.requestState<string>();
      const running = state === undefined ? start(request, work, answerTimeoutMs) : resume(state, request);
      const unlink = stopWith(ctx.mcpReq.signal, running.stop);
      const asked = new Promise<undefined>((resolve) => (running.asked = () => resolve(undefined)));
      const done = running.done.then((result) => ({ done: result as Result })); // of the same request: of the same type
      const first = running.open === undefined ? await Promise.race([done, asked]) : undefined;
      if (first !== undefined) {
        unlink();
        return first;
      }
      done.catch(() => undefined);
      unlink(); // the request ends here; the work goes on
      return { asks: keepWaiting(running, running.open?.questions ?? {}) };
    },
  };
}

function start(
  request: ServedRequest,
  work: (channel: ElicitationChannel, stop: AbortSignal) => Promise<unknown>,
  answerTimeoutMs: number,
): Running {
  const stop = new AbortController();
  let last: Promise<unknown> = Promise.resolve();
  const channel: ElicitationChannel = {
    request: () => running.ctx,
    client: capabilitiesOf(request),
    early: new Map(Object.entries(request.ctx.mcpReq.inputResponses ?? {})),
    put(questions, signal) {
      const put = isModern(request.ctx) ? waitForAnswers : sendQuestions;
      const next = last.then(() => put(running, questions, signal, answerTimeoutMs));
      last = next;
      return next;
    },
  };
  const running: Running = {
    key: request.key,
    ctx: request.ctx,
    stop,
    done: Promise.resolve().then(() => work(channel, stop.signal)),
    open: undefined,
    asked: () => undefined,
  };
  return running;
}

/** Never rejects: if nobody answers, the result is undefined. */
function waitForAnswers(
  running: Running,
  questions: Readonly<Record<string, InputRequest>>,
  signal: AbortSignal,
  answerTimeoutMs: number,
): Promise<Responses | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const take = (responses: Responses | undefined) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      running.open = undefined;
      resolve(responses);
    };
    const giveUp = () => take(undefined);
    const timer = setTimeout(giveUp, answerTimeoutMs);
    timer.unref();
    signal.addEventListener("abort", giveUp);
    running.open = { questions: { ...questions }, take };
    running.asked();
  });
}

/** Never rejects either: a client that cannot answer counts as one that did not. */
async function sendQuestions(
  { ctx }: Running,
  questions: Readonly<Record<string, InputRequest>>,
  signal: AbortSignal,
  answerTimeoutMs: number,
): Promise<Responses | undefined> {
  const options = { signal, timeout: answerTimeoutMs, resetTimeoutOnProgress: true };
  const send = async ([name, question]: [string, InputRequest]) => {
    const { method, params } = question;
    const isPage = method === "elicitation/create" && params.mode === "url";
    // Only the older protocol needs an id for what happens on the page.
    const given = isPage ? { ...params, elicitationId: randomUUID() } : params;
    return [name, await ctx.mcpReq.send({ method, params: { ...given } }, options)] as const;
  };
  try {
    return Object.fromEntries(await Promise.all(Object.entries(questions).map(send)));
  } catch {
    return undefined;
  }
}

function stopWith(signal: AbortSignal, stop: AbortController): () => void {
  const cancel = () => stop.abort();
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  return () => signal.removeEventListener("abort", cancel);
}

export function isModern(ctx: ServerContext): boolean {
  return ctx.mcpReq.envelope !== undefined;
}

/** Newer clients state it with every request, older ones once. */
function capabilitiesOf({ ctx, client }: ServedRequest): ClientCapabilities {
  const envelope: Readonly<Record<string, unknown>> = { ...ctx.mcpReq.envelope };
  // The protocol library has checked the envelope; its type only forgets the key.
  const own = envelope[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
  return own ?? client ?? {};
}
