/**
 * Writes an answer to a client: in its wire, streamed or as a whole, kept alive while the model
 * thinks, and never faster than it reads.
 */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import type { Answer, ModelEvent } from "../spec/model.ts";
import type { Frame, WireName } from "../wire/codec.ts";
import { createCollector } from "../wire/answer.ts";
import { encodeFrame } from "../wire/sse.ts";
import type { ClientRequest, Turn } from "./turn.ts";
import { stateOf } from "./state.ts";
import { keepResponse, responseOf } from "./stored-responses.ts";

/**
 * The answer in the client's wire, streamed or as a whole. The first item decides the status, so
 * errors before it get a real one.
 */
export async function writeAnswer(turn: Turn, events: AsyncIterable<ModelEvent>): Promise<Answer> {
  const { asked, codec, request, response, services } = turn;
  const collector = createCollector();
  const how = {
    model: request.model,
    id: createAnswerId(asked.wire),
    createdAt: Math.floor(services.now() / 1000),
    sign: services.sign,
    request: asked.body,
  };
  const encoder = codec.createEncoder(how);
  const stream = request.stream === true ? createAnswerStream(turn) : undefined;
  /** What belongs before the first item, held until there is one. */
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
    stream.end();
    const whole = asked.wire === "responses" ? responseOf(last) : undefined;
    if (whole !== undefined) keepResponse(asked.body, turn.body, whole, stateOf(services.state, asked.key));
  } else if (hasFailed) {
    const failure = codec.encodeError(error);
    writeJson(response, failure.status, failure.body, failure.headers);
  } else {
    const whole = codec.encodeAnswer(answer, how);
    if (asked.wire === "responses") keepResponse(asked.body, turn.body, whole, stateOf(services.state, asked.key));
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

interface AnswerStream {
  isOpen(): boolean;
  write(frames: readonly Frame[]): Promise<void>;
  /** The last of it was written. */
  end(): void;
  /** Stops sending signs of life. */
  stop(): void;
}

/** The frames of an answer to one client, kept alive while the model thinks. */
function createAnswerStream({ asked, response, services, signal }: Turn): AnswerStream {
  const writer = createWriter(response, signal);
  const framing = wantsList(asked) ? createListFraming() : createEventFraming(asked.wire);
  let timer: NodeJS.Timeout | undefined;
  return {
    isOpen: () => response.headersSent,
    async write(frames) {
      if (!response.headersSent) {
        if (framing.waitsForFrame && frames.length === 0) return;
        response.writeHead(200, { "content-type": framing.contentType, "cache-control": "no-cache" });
        timer = setInterval(() => void writer.write(framing.heartbeat()), services.keepAliveMs);
        timer.unref();
      }
      timer?.refresh();
      if (frames.length === 0) return;
      await writer.write(frames.length === 1 ? framing.encode(frames[0]!) : frames.map(framing.encode).join(""));
    },
    end() {
      if (framing.end !== "") void writer.write(framing.end);
      writer.end();
    },
    stop: () => clearInterval(timer),
  };
}

/** How the frames of an answer stand in the body. */
interface Framing {
  readonly contentType: string;
  /** The status is decided by the first frame, and not already by the first item. */
  readonly waitsForFrame: boolean;
  encode(frame: Frame): string;
  /** A sign of life that no client takes for a part of the answer. */
  heartbeat(): string;
  readonly end: string;
}

function createEventFraming(wire: WireName): Framing {
  let beats = 0;
  return {
    contentType: "text/event-stream; charset=utf-8",
    waitsForFrame: false,
    encode: encodeFrame,
    heartbeat: () => heartbeat(wire, ++beats),
    end: "",
  };
}

/** Gemini streams one JSON list, element by element, unless the client asks for events with `alt=sse`. */
export function wantsList({ wire, stream, query }: ClientRequest): boolean {
  return wire === "gemini" && stream === true && new URLSearchParams(query).get("alt") !== "sse";
}

function createListFraming(): Framing {
  let before = "[";
  return {
    contentType: "application/json; charset=utf-8",
    waitsForFrame: true,
    encode({ data }) {
      const element = before + data;
      before = "\n,\n";
      return element;
    },
    // Blank space may stand between the elements of a list.
    heartbeat: () => "\n",
    end: "\n]\n",
  };
}

/** Codex resets its timer only on events, the Anthropic SDK knows `ping`, and the others ignore comments. */
function heartbeat(wire: WireName, count: number): string {
  if (wire === "responses")
    return encodeFrame({ event: "keepalive", data: `{"type":"keepalive","sequence_number":${count}}` });
  if (wire === "messages") return encodeFrame({ event: "ping", data: '{"type":"ping"}' });
  return ": keep-alive\n\n";
}

/**
 * What is written in one turn of the event loop is sent as one piece, because each piece costs a
 * header, a buffer and a callback.
 */
export interface Writer {
  /** Resolves at once unless the client reads more slowly than the model writes. */
  write(piece: string | Uint8Array): Promise<void> | undefined;
  end(): void;
}

/** More than this is not kept back for the end of the turn. */
const maxGathered = 256 * 1024;

export function createWriter(response: ServerResponse, signal: AbortSignal): Writer {
  let pieces: (string | Uint8Array)[] = [];
  let length = 0;
  let isFull = false;

  const flush = () => {
    if (pieces.length === 0) return;
    const gathered = pieces;
    pieces = [];
    length = 0;
    if (!response.destroyed) isFull = !response.write(joinPieces(gathered));
  };
  return {
    write(piece) {
      if (pieces.length === 0) setImmediate(flush);
      pieces.push(piece);
      length += piece.length;
      if (length >= maxGathered) flush();
      return isFull && response.writableNeedDrain ? drained(response, signal) : undefined;
    },
    end() {
      flush();
      response.end();
    },
  };
}

function joinPieces(pieces: readonly (string | Uint8Array)[]): string | Uint8Array {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return first;
  if (pieces.every((piece) => typeof piece === "string")) return pieces.join("");
  return Buffer.concat(pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)));
}

/** A client that reads slowly slows the model down, and costs no memory. */
function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
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

/** Our own ids, so that a response can be found again whoever answered it. */
function createAnswerId(wire: WireName): string {
  return `${idPrefixes[wire]}${randomUUID().replaceAll("-", "")}`;
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
