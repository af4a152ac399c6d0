/**
 * The lane for a client and an upstream that speak the same wire, where nothing has to be changed: bytes go through as
 * they are, so signatures survive. Only one thing is watched: calls of an answer that breaks off never arrive, because
 * some clients would run them.
 */
import type { JsonObject } from "../base/json.ts";
import type { ModelError } from "../spec/model.ts";
import { TransportError, type Transport } from "../model/transport.ts";
import { readTransportFailure } from "../model/failure.ts";
import type { Codec, WireName } from "../wire/codec.ts";
import { encodeFrame } from "../wire/sse.ts";
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

/** What an API's own clients say beside the body, and its servers want to hear. */
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

/** Which bytes announce a call, and which say that the answer has ended as it should. */
const marks: Readonly<Record<WireName, { readonly calls: readonly string[]; readonly end: RegExp }>> = {
  chat: { calls: ['"tool_calls":[', '"tool_calls": ['], end: /"finish_reason"\s*:\s*"|\[DONE\]/ },
  gemini: { calls: ['"functionCall"'], end: /"finishReason"\s*:/ },
  messages: { calls: ['"tool_use"'], end: /"message_stop"/ },
  responses: { calls: ['_call"'], end: /"response\.(?:completed|incomplete|failed)"/ },
};
/** Longer than any mark: so much of a chunk's end is looked at again together with the next. */
const overlap = 64;
/** The end of an answer is in its last frame, which may carry the whole answer once more: its beginning says what it is. */
const tailBytes = 64 * 1024;

/** The body's bytes, each frame as it came; from the first call on they wait for the proper end of the answer. */
export async function* holdCalls(
  body: AsyncIterable<Uint8Array>,
  wire: WireName,
  broken: (error: unknown) => JsonObject,
): AsyncGenerator<Uint8Array> {
  const { calls, end } = marks[wire];
  const held: Uint8Array[] = [];
  const tail = createTail();
  let isHolding = false;
  let failure: unknown;
  let before: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of body) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const seam = Buffer.concat([before, bytes.subarray(0, overlap)]);
      isHolding ||= calls.some((mark) => bytes.indexOf(mark) >= 0 || seam.indexOf(mark) >= 0);
      before = bytes.subarray(-overlap);
      tail.add(bytes);
      if (isHolding) held.push(chunk);
      else yield chunk;
    }
  } catch (error) {
    failure = error;
  }
  if (failure === undefined && end.test(tail.text())) yield* held;
  else yield Buffer.from(brokenFrame(wire, broken(failure)));
}

/** The last bytes of a stream, and the beginning of the chunk they came in. */
function createTail(): { add(bytes: Buffer): void; text(): string } {
  let kept: Buffer[] = [];
  let size = 0;
  return {
    add(bytes) {
      kept.push(bytes);
      size += bytes.length;
      while (kept.length > 1 && size - (kept[0]?.length ?? 0) >= tailBytes) size -= kept.shift()?.length ?? 0;
    },
    text: () => Buffer.concat(kept).toString("latin1"),
  };
}

/** The wire's own way to say that the stream failed. */
function brokenFrame(wire: WireName, error: JsonObject): string {
  const data = JSON.stringify(error);
  if (wire === "messages") return `\n\n${encodeFrame({ event: "error", data })}`;
  if (wire === "responses")
    return `\n\n${encodeFrame({ event: "error", data: JSON.stringify({ type: "error", ...error }) })}`;
  return `\n\n${encodeFrame({ data })}`;
}
