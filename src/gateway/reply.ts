/** Writing an answer to a client: its wire, streamed or whole, kept alive while the model thinks, never faster than it reads. */
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import type { Answer, ModelEvent } from "../spec/model.ts";
import type { Frame, WireName } from "../wire/codec.ts";
import { createCollector } from "../wire/answer.ts";
import { encodeFrame } from "../wire/sse.ts";
import type { Turn } from "./turn.ts";
import { keepResponse, responseOf } from "./stored-responses.ts";

/** The answer in the client's wire, streamed or whole. The status is decided by the first item, so errors before it are true ones. */
export async function writeAnswer(turn: Turn, events: AsyncIterable<ModelEvent>): Promise<Answer> {
  const { asked, codec, request, response, services } = turn;
  const collector = createCollector();
  const how = {
    model: request.model,
    id: createAnswerId(asked.wire),
    createdAt: Math.floor(services.now() / 1000),
    sign: services.sign,
  };
  const encoder = codec.createEncoder(how);
  const stream = request.stream === true ? createEventStream(turn) : undefined;
  /** What belongs before the first item, until there is one. */
  const waiting: Frame[] = [];
  let last: readonly Frame[] = [];
  try {
    for await (const event of events) {
      collector.push(event);
      if (stream === undefined) continue;
      const frames = encoder.push(event);
      if (event.type === "answer.ended") last = frames;
      if (stream.isOpen() || isItem(event) || isGoodEnd(event)) await stream.write([...waiting.splice(0), ...frames]);
      else waiting.push(...frames);
    }
  } finally {
    stream?.stop();
  }
  const answer = collector.answer();
  const error = answer.error ?? { type: "network", message: "The model's answer broke off." };
  const hasFailed = answer.outcome === "error" || answer.outcome === "truncated";
  if (stream?.isOpen() === true) {
    response.end();
    const whole = asked.wire === "responses" ? responseOf(last) : undefined;
    if (whole !== undefined) keepResponse(asked.body, turn.body, whole, services.state);
  } else if (hasFailed) {
    const failure = codec.encodeError(error);
    writeJson(response, failure.status, failure.body, failure.headers);
  } else {
    const whole = codec.encodeAnswer(answer, how);
    if (asked.wire === "responses") keepResponse(asked.body, turn.body, whole, services.state);
    writeJson(response, 200, asked.finish === undefined ? whole : asked.finish(whole));
  }
  return answer;
}

function isItem(event: ModelEvent): boolean {
  return event.type === "item.started" || event.type === "item.delta" || event.type === "item.done";
}

function isGoodEnd(event: ModelEvent): boolean {
  return event.type === "answer.ended" && event.answer.outcome !== "error" && event.answer.outcome !== "truncated";
}

interface EventStream {
  isOpen(): boolean;
  write(frames: readonly Frame[]): Promise<void>;
  stop(): void;
}

/** Server-sent events to one client, kept alive while the model thinks. */
function createEventStream({ asked, response, services, signal }: Turn): EventStream {
  let timer: NodeJS.Timeout | undefined;
  let beats = 0;
  return {
    isOpen: () => response.headersSent,
    async write(frames) {
      if (!response.headersSent) {
        response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
        timer = setInterval(() => response.write(heartbeat(asked.wire, ++beats)), services.keepAliveMs);
        timer.unref();
      }
      timer?.refresh();
      if (frames.length === 0) return;
      gather(response);
      if (!response.write(frames.map(encodeFrame).join(""))) await drained(response, signal);
    },
    stop: () => clearInterval(timer),
  };
}

/** Codex resets its timer by events only, the Anthropic SDK knows `ping`, the others read over comments. */
function heartbeat(wire: WireName, count: number): string {
  if (wire === "responses")
    return encodeFrame({ event: "keepalive", data: `{"type":"keepalive","sequence_number":${count}}` });
  if (wire === "messages") return encodeFrame({ event: "ping", data: '{"type":"ping"}' });
  return ": keep-alive\n\n";
}

/** What is written in one turn of the event loop leaves in one system call. */
export function gather(response: ServerResponse): void {
  if (response.writableCorked > 0) return;
  response.cork();
  setImmediate(() => response.uncork());
}

/** A client that reads slowly slows the model down, and costs no memory. */
export function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (signal.aborted || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}

const idPrefixes: Readonly<Record<WireName, string>> = {
  responses: "resp_",
  chat: "chatcmpl-",
  messages: "msg_",
  gemini: "",
};

/** Ids of our own, so that a response can be found again whoever answered it. */
function createAnswerId(wire: WireName): string {
  return `${idPrefixes[wire]}${randomBytes(16).toString("hex")}`;
}

export function writeJson(
  response: ServerResponse,
  status: number,
  body: JsonObject,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
