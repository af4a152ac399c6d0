/**
 * The life of one request of a client, from top to bottom: read it, insert what it refers to, find its
 * conversation, decide whether it may be sent, choose who answers, and write the answer in the
 * client's own wire.
 */
import type { ServerResponse } from "node:http";
import { setTimeout } from "node:timers/promises";
import type { Answer, ModelError, ModelEvent, ModelRequest } from "../spec/model.ts";
import { isRetryable } from "../model/failure.ts";
import type { Codec, WireName } from "../wire/codec.ts";
import { codecs } from "../wire/index.ts";
import { askTargets, toClientError } from "./ask-targets.ts";
import { keepThoughts, restoreThoughts } from "./call-state.ts";
import { identify } from "./clients.ts";
import type { JournalEntry } from "./journal.ts";
import { answerSearch, isSearchRequest } from "./search.ts";
import { createWriter, wantsList, writeAnswer } from "./reply.ts";
import type { ClientRequest, RequestRecord, Services, Turn } from "./turn.ts";
import { estimateUsage } from "./side-endpoints.ts";
import { stateOf } from "./state.ts";
import { keepResponse, refusal, resolveReferences } from "./stored-responses.ts";
import { failureOf, hearStream, hearWhole, holdCalls, sendUntouched } from "./untouched.ts";
import type { Target } from "./upstreams.ts";

export async function exchange(
  asked: ClientRequest,
  services: Services,
  response: ServerResponse,
): Promise<RequestRecord> {
  const startedAt = services.now();
  const codec = codecs[asked.wire];
  const body =
    asked.wire === "responses" ? resolveReferences(asked.body, stateOf(services.state, asked.key)) : asked.body;
  const given = readRequest(codec, { ...asked, body }, services);
  const seen = identify(asked.headers, asked.body, given, asked.key);
  const talk = seen.isNamed ? undefined : services.conversations.find(seen.conversation, given);
  const who = talk === undefined ? seen : { ...seen, conversation: talk.id };
  const request = hasPlaceForThoughts(asked.wire) ? given : restoreThoughts(given, who.conversation, services.state);
  const refused = services.budget.refuse({ conversation: who.conversation, key: asked.key }, request);
  const targets = services.upstreams.choose(request, who.conversation);
  const stop = new AbortController();
  response.on("close", () => (response.writableFinished ? undefined : stop.abort()));
  const turn: Turn = { asked, body, codec, request, who, services, response, signal: stop.signal, refusals: [] };

  const ended = await answerTurn(turn, refused, targets).finally(() => talk?.release());
  const { answer, target } = ended;
  const usage = answer.usage;
  // A server that does not count must not make a budget unlimited.
  const isEstimated = usage === undefined && target !== undefined && services.budget.needsTokens;
  const counted = isEstimated ? estimateUsage(request, answer) : usage;
  const costUsd = counted === undefined || target === undefined ? 0 : target.cost(counted);
  // What was refused before a model was asked costs nothing.
  if (target !== undefined) services.budget.spend({ conversation: who.conversation, key: asked.key }, counted, costUsd);
  ended.entry?.end(answer, costUsd);
  if (!hasPlaceForThoughts(asked.wire)) keepThoughts(answer.items, who.conversation, services.state);
  talk?.answered(answer);
  return {
    client: who.client,
    conversation: who.conversation,
    ...(ended.entry === undefined ? {} : { session: ended.entry.id }),
    wire: asked.wire,
    model: request.model,
    target: target?.name ?? "none",
    status: response.statusCode,
    outcome: answer.outcome,
    ...(answer.error === undefined ? {} : { error: answer.error.message }),
    ...(usage === undefined ? {} : { inputTokens: usage.input, outputTokens: usage.output }),
    ...(costUsd === 0 ? {} : { costUsd }),
    calls: answer.items.filter((item) => item.type === "call").length,
    refused: turn.refusals,
    untouched: ended.untouched === true,
    durationMs: services.now() - startedAt,
  };
}

interface TurnEnd {
  readonly answer: Answer;
  readonly target?: Target;
  readonly entry?: JournalEntry;
  readonly untouched?: boolean;
}

async function answerTurn(turn: Turn, refused: ModelError | undefined, targets: readonly Target[]): Promise<TurnEnd> {
  const { asked, request, services, who } = turn;
  if (refused !== undefined) return { answer: await writeAnswer(turn, failing(refused)) };
  const [first] = targets;
  if (first === undefined) {
    const names = services.upstreams.models().join(", ");
    const message = `No route takes the model '${request.model}'.${names === "" ? "" : ` These are known: ${names}.`}`;
    return { answer: await writeAnswer(turn, failing({ type: "unknown_model", message })) };
  }
  const entry = services.journal?.begin(who, request, { wire: asked.wire, target: first.name });
  try {
    return { ...(await askModel(turn, targets, first, entry)), ...(entry === undefined ? {} : { entry }) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    entry?.end({ items: [], outcome: "error", error: { message } }, 0);
    throw error;
  }
}

/** The model's answer, written to the client, by the shortest way that leaves nothing out. */
async function askModel(
  turn: Turn,
  targets: readonly Target[],
  first: Target,
  entry: JournalEntry | undefined,
): Promise<TurnEnd> {
  const { asked, request, services, signal } = turn;
  if (isSearchRequest(request) && !hasOwnSearch(first)) {
    const events = await answerSearch(request, asked.wire, services.search, signal);
    return { answer: await writeAnswer(turn, listed(events)), target: first };
  }
  if (canGoUntouched(turn, first)) {
    const answer = await passThrough(turn, first, targets.length === 1);
    if (answer !== undefined) return { answer, target: first, untouched: true };
  }
  const used = { target: first };
  const events = askTargets(turn, targets, used, entry);
  return { answer: await writeAnswer(turn, events), target: used.target };
}

/** Gemini names the model and whether to stream in the path. Claude Code begins its prompt with a line for billing. */
function readRequest(codec: Codec, asked: ClientRequest, { sign, tools }: Services): ModelRequest {
  const many = asked.body["n"];
  if (typeof many === "number" && many > 1)
    throw refusal(400, "n_not_supported", "One answer a request: 'n' must be 1.");
  const request = codec.decodeRequest(asked.body, { sign });
  const instructions = request.instructions?.replace(/^x-anthropic-billing-header:[^\n]*\n*/, "");
  return {
    ...request,
    ...(asked.model === undefined ? {} : { model: asked.model }),
    ...(asked.stream === undefined ? {} : { stream: asked.stream }),
    ...(instructions === undefined ? {} : { instructions }),
    tools: tools(asked.wire, asked.body["tools"], () =>
      request.tools.filter(({ name }) => name !== "DeferredToolPlaceholder"),
    ),
  };
}

function hasPlaceForThoughts(wire: WireName): boolean {
  return wire === "responses" || wire === "messages";
}

/** Your own server has no search, whatever API it speaks. A named provider has one, wherever it is reached. */
function hasOwnSearch(target: Target): boolean {
  const host = new URL(target.address.baseUrl).hostname;
  const isOwn =
    /^(?:127\.|localhost$|\[::1\]$)/.test(host) && !/^(?:anthropic|openai|gemini)$/.test(target.provider ?? "");
  return target.native !== undefined && target.native !== "chat" && !isOwn;
}

/** Same wire, same model name, nothing to hide and nothing to refuse, so the bytes can be passed on unchanged. */
function canGoUntouched({ asked, body, request, services }: Turn, target: Target): boolean {
  if (target.native !== asked.wire || target.model !== request.model) return false;
  if (body !== asked.body || asked.finish !== undefined || wantsList(asked)) return false;
  if (services.governance?.enforce === true) return false;
  const reasoning = target.prepare(request).reasoning?.effort;
  if (reasoning !== request.reasoning?.effort) return false;
  return services.secrets === undefined || !services.secrets.holds(Buffer.from(asked.bytes).toString("utf8"), request);
}

/** Before the one quick second try, unless the server says how long, and at most. */
const [pauseMs, maxPauseMs] = [200, 1000];

/**
 * Undefined if nothing was sent to the client yet, so that the ordinary way can be tried. `isOnly`
 * means that no other target could answer.
 */
async function passThrough(turn: Turn, target: Target, isOnly: boolean): Promise<Answer | undefined> {
  const { asked, codec, request, response, services, signal } = turn;
  const given = { codec, target, stream: request.stream === true, headers: asked.headers, query: asked.query };
  const send = () => sendUntouched({ ...given, bytes: asked.bytes }, services.transport, signal);
  let sent = await send();
  let failure = await failureOf(sent, target);
  if (failure !== undefined && isOnly && isRetryable(failure) && !signal.aborted) {
    await setTimeout(Math.min(failure.retryAfterMs ?? pauseMs, maxPauseMs));
    sent = await send();
    failure = await failureOf(sent, target);
  }
  // A server that is strict about fields may accept the request in our own form.
  const isStrict = failure?.type === "bad_request" || failure?.type === "bad_tool";
  if (failure !== undefined && isOnly && !isStrict) {
    services.upstreams.report(target, turn.who.conversation, failure);
    return writeAnswer(turn, failing(toClientError(failure)));
  }
  if (failure !== undefined || !("body" in sent)) return undefined;
  const type = sent.headers["content-type"] ?? "application/json";
  const isStream = type.includes("event-stream");
  // Something that was not asked for, usually a page of a proxy, is not an answer that a client could read.
  if (isStream !== (request.stream === true) || type.includes("html")) {
    for await (const _page of sent.body) break;
    return undefined;
  }
  const heard = isStream ? hearStream(codec) : hearWhole(codec);
  const broken = () => codec.encodeError({ type: "network", message: "The model's answer broke off." }).body;
  const body = (isStream ? holdCalls(sent.body, asked.wire, broken) : sent.body)[Symbol.asyncIterator]();
  // Nothing is sent to the client before there is something, so that its status can be right.
  const first = await body.next().catch(() => undefined);
  if (first === undefined || first.done) return undefined;
  services.upstreams.report(target, turn.who.conversation, undefined);
  response.writeHead(sent.status, { "content-type": type, ...(isStream ? { "cache-control": "no-cache" } : {}) });
  const writer = createWriter(response, signal);
  for (let next: IteratorResult<Uint8Array> = first; !next.done; next = await body.next()) {
    const full = writer.write(next.value);
    heard.push(next.value);
    if (full !== undefined) await full;
  }
  writer.end();
  const answer = heard.answer();
  if (asked.wire === "responses" && answer.id !== undefined) {
    const [id, createdAt] = [answer.id, Math.floor(services.now() / 1000)];
    const whole = codec.encodeAnswer(answer, { id, model: request.model, createdAt, request: asked.body });
    keepResponse(asked.body, turn.body, whole, stateOf(services.state, asked.key));
  }
  return answer;
}

async function* failing(error: ModelError): AsyncGenerator<ModelEvent> {
  yield { type: "answer.ended", answer: { outcome: "error", finish: "error", error } };
}

async function* listed(events: readonly ModelEvent[]): AsyncGenerator<ModelEvent> {
  yield* events;
}
