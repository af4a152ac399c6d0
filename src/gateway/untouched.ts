/**
 * The lane for a client and an upstream that speak the same wire, if nothing has to be changed: bytes
 * pass unchanged, so that signatures survive. Only one thing is watched: calls of an answer that
 * breaks off never arrive, because some clients would run them.
 */
import { type JsonObject, parseJson } from "../base/json.ts";
import type { Answer, ModelError } from "../spec/model.ts";
import { TransportError, type Transport } from "../model/transport.ts";
import { readHttpFailure, readTransportFailure } from "../model/failure.ts";
import { createCollector } from "../wire/answer.ts";
import type { Codec, WireName } from "../wire/codec.ts";
import { encodeFrame } from "../wire/sse.ts";
import { createStreamReader } from "../wire/stream.ts";
import type { Headers } from "./clients.ts";
import type { Target } from "./upstreams.ts";

export interface UntouchedRequest {
  readonly codec: Codec;
  readonly target: Target;
  readonly bytes: Uint8Array;
  readonly stream: boolean;
  readonly headers: Headers;
  readonly query: string;
}

export interface UntouchedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Headers that an API's own clients send, and that its servers want. */
const forwarded =
  /^(?:anthropic-(?:beta|version)|openai-(?:beta|organization|project)|x-goog-api-client|x-request-id)$/;

export async function sendUntouched(
  { codec, target, bytes, stream, headers, query }: UntouchedRequest,
  transport: Transport,
  signal: AbortSignal,
): Promise<UntouchedAnswer | ModelError> {
  const path = codec.path(target.model, stream);
  const url = new URL(`${target.address.baseUrl.replace(/\/$/, "")}${path}`);
  for (const [name, value] of new URLSearchParams(query)) if (name !== "key") url.searchParams.set(name, value);
  const passed = Object.entries(headers).flatMap(([name, value]) =>
    forwarded.test(name) && typeof value === "string" ? [[name, value] as const] : [],
  );
  try {
    return await transport.post(
      url,
      [bytes],
      { ...Object.fromEntries(passed), "content-type": "application/json", ...target.address.headers },
      signal,
    );
  } catch (error) {
    if (error instanceof TransportError) return readTransportFailure(error);
    throw error;
  }
}

/** Why the model's server refused or could not be reached. Undefined if it answers. */
export async function failureOf(sent: UntouchedAnswer | ModelError, target: Target): Promise<ModelError | undefined> {
  if (!("body" in sent)) return sent;
  const { status, headers, body } = sent;
  if (status < 400) return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const { host } = new URL(target.address.baseUrl);
  const at = { model: target.model, host, keyName: target.address.keyName ?? "its key", toolNames: [] };
  return readHttpFailure(status, headers, Buffer.concat(chunks).toString("utf8"), at);
}

/** Reads what the client is sent as well, for the journal, budgets and metrics. */
export interface Listener {
  push(chunk: Uint8Array): void;
  answer(): Answer;
}

/** The answer for bytes that cannot be read. They were sent to the client nevertheless. */
const unread: Answer = { items: [], outcome: "ok" };

export function hearStream(codec: Codec): Listener {
  const reader = createStreamReader(codec);
  const collector = createCollector();
  let isReadable = true;
  const hear = (read: () => ReturnType<typeof reader.push>) => {
    try {
      if (isReadable) for (const event of read()) collector.push(event);
    } catch {
      isReadable = false;
    }
  };
  return {
    push: (chunk) => hear(() => reader.push(chunk)),
    answer() {
      hear(reader.end);
      return isReadable ? collector.answer() : unread;
    },
  };
}

export function hearWhole(codec: Codec): Listener {
  const chunks: Uint8Array[] = [];
  return {
    push: (chunk) => void chunks.push(chunk),
    answer() {
      try {
        return codec.decodeAnswer(JSON.parse(Buffer.concat(chunks).toString("utf8")));
      } catch {
        return unread;
      }
    },
  };
}

/** The bytes that announce a call, and the pattern that says that the answer has ended properly. */
const marks: Readonly<Record<WireName, { readonly call: Buffer; readonly end: RegExp }>> = {
  chat: { call: Buffer.from('"tool_calls":'), end: /"finish_reason"\s*:\s*"|\[DONE\]/ },
  gemini: { call: Buffer.from('"functionCall"'), end: /"finishReason"\s*:/ },
  messages: { call: Buffer.from('"tool_use"'), end: /"message_stop"/ },
  responses: { call: Buffer.from('_call"'), end: /"response\.(?:completed|incomplete|failed)"/ },
};

/** The position at which a call is announced, or -1. Some Chat servers send an empty list of calls with every word. */
function findCall(bytes: Buffer, mark: Buffer, wire: WireName): number {
  let at = bytes.indexOf(mark);
  if (wire !== "chat") return at;
  while (at >= 0 && /^\s*(?:null|\[\s*\])/.test(bytes.toString("latin1", at + mark.length, at + overlap)))
    at = bytes.indexOf(mark, at + mark.length);
  return at;
}

/** How many bytes at the end of a chunk are searched again together with the next chunk. It is longer than any mark. */
const overlap = 64;
/** An answer says in one of its last frames that it has ended. Only its usage and a closing frame come after that. */
const lastFrames = 4;

/** The bytes of the body, unchanged. From the first call on they are held back until the answer has ended properly. */
export async function* holdCalls(
  body: AsyncIterable<Uint8Array>,
  wire: WireName,
  broken: (error: unknown) => JsonObject,
): AsyncGenerator<Uint8Array> {
  const { call, end } = marks[wire];
  const held: Uint8Array[] = [];
  const tail = createTail();
  let isHolding = false;
  let failure: unknown;
  let before: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of body) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      tail.add(bytes);
      if (isHolding) {
        held.push(chunk);
        continue;
      }
      const seam = Buffer.concat([before, bytes.subarray(0, overlap)]);
      before = (bytes.length < overlap ? Buffer.concat([before, bytes]) : bytes).subarray(-overlap);
      const at = findCall(bytes, call, wire);
      isHolding = at >= 0 || findCall(seam, call, wire) >= 0;
      if (!isHolding) {
        yield chunk;
        continue;
      }
      // The frames before the one that holds the call need not wait with it.
      const frame = at < 0 ? 0 : bytes.lastIndexOf("\n\n", at) + 2;
      if (frame > 1) yield bytes.subarray(0, frame);
      held.push(bytes.subarray(frame > 1 ? frame : 0));
    }
  } catch (error) {
    failure = error;
  }
  if (failure === undefined && tail.frames().some((frame) => end.test(frame))) yield* held;
  else yield Buffer.from(brokenFrame(wire, broken(failure)));
}

/**
 * The last frames of a stream. Only whole frames count, because half of the frame that announces the end is
 * not an end.
 */
function createTail(): { add(bytes: Buffer): void; frames(): readonly string[] } {
  const kept: { readonly bytes: Buffer; readonly ends: number }[] = [];
  let ends = 0;
  return {
    add(bytes) {
      const chunk = { bytes, ends: countEnds(bytes) };
      kept.push(chunk);
      ends += chunk.ends;
      while (kept[0] !== undefined && ends - kept[0].ends > lastFrames) ends -= kept.shift()?.ends ?? 0;
    },
    frames() {
      const all = Buffer.concat(kept.map(({ bytes }) => bytes))
        .toString("utf8")
        .split(/\r?\n\r?\n/);
      const last = all.pop() ?? "";
      return isWholeFrame(last) ? [...all, last] : all;
    },
  };
}

/** Counts the blank lines in a chunk from its end, up to the number that matters. */
function countEnds(bytes: Buffer): number {
  let count = 0;
  const blank = bytes.indexOf("\r\n\r\n", Math.max(0, bytes.length - 4096)) >= 0 ? "\r\n\r\n" : "\n\n";
  for (
    let at = bytes.lastIndexOf(blank);
    at >= 0 && count <= lastFrames;
    at = at === 0 ? -1 : bytes.lastIndexOf(blank, at - 1)
  )
    count++;
  return count;
}

/** Whether the text is a whole frame, although a server may omit the blank line after its last one. */
function isWholeFrame(frame: string): boolean {
  const data = /^data: ?(.*)$/m.exec(frame)?.[1]?.trim() ?? "";
  return data === "[DONE]" || (data !== "" && parseJson(data).ok);
}

/** The wire's own way to say that the stream failed. */
function brokenFrame(wire: WireName, error: JsonObject): string {
  const data = JSON.stringify(error);
  if (wire === "messages") return `\n\n${encodeFrame({ event: "error", data })}`;
  if (wire === "responses")
    return `\n\n${encodeFrame({ event: "error", data: JSON.stringify({ type: "error", ...error }) })}`;
  return `\n\n${encodeFrame({ data })}`;
}
