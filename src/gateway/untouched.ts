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
const marks: Readonly<Record<WireName, { readonly call: RegExp; readonly end: RegExp }>> = {
  chat: { call: /"tool_calls"\s*:\s*\[/, end: /"finish_reason"\s*:\s*"|\[DONE\]/ },
  gemini: { call: /"functionCall"\s*:/, end: /"finishReason"\s*:/ },
  messages: { call: /"tool_use"/, end: /"message_stop"/ },
  responses: {
    call: /"(?:function|custom_tool|local_shell|shell|apply_patch)_call"/,
    end: /"response\.(?:completed|incomplete|failed)"/,
  },
};

/** The body's bytes, each frame as it came; from the first call on they wait for the proper end of the answer. */
export async function* holdCalls(
  body: AsyncIterable<Uint8Array>,
  wire: WireName,
  broken: (error: unknown) => JsonObject,
): AsyncGenerator<Uint8Array> {
  const { call, end } = marks[wire];
  const held: Uint8Array[] = [];
  let isHolding = false;
  let hasEnded = false;
  let failure: unknown;
  let rest = "";
  try {
    for await (const chunk of body) {
      // A mark may lie across two chunks: enough of the one before is looked at again.
      const seen = rest + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
      isHolding ||= call.test(seen);
      hasEnded ||= end.test(seen);
      rest = seen.slice(-40);
      if (isHolding) held.push(chunk);
      else yield chunk;
    }
  } catch (error) {
    failure = error;
  }
  if (hasEnded) {
    yield* held;
    return;
  }
  yield Buffer.from(brokenFrame(wire, broken(failure)));
}

/** The wire's own way to say that the stream failed. */
function brokenFrame(wire: WireName, error: JsonObject): string {
  const data = JSON.stringify(error);
  if (wire === "messages") return `\n\n${encodeFrame({ event: "error", data })}`;
  if (wire === "responses")
    return `\n\n${encodeFrame({ event: "error", data: JSON.stringify({ type: "error", ...error }) })}`;
  return `\n\n${encodeFrame({ data })}`;
}
