import type { FetchLike } from "@modelcontextprotocol/client";
import { maxMessageBytes, tooLong } from "./limits.ts";

/** A `fetch` that gives up on an answer that is too large to hold in memory. */
export const limitedFetch: FetchLike = async (url, init) => limitResponse(await fetch(url, init));

/** The same answer, ended by an error where it grows too long. */
export function limitResponse(response: Response): Response {
  if (response.body === null) return response;
  const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
  const limited = response.body.pipeThrough(limitBytes(isStream));
  const { status, statusText, headers } = response;
  const copy = new Response(limited, { status, statusText, headers });
  // Redirects are judged by where the answer came from, which a copy does not know.
  Object.defineProperties(copy, { url: { value: response.url }, redirected: { value: response.redirected } });
  return copy;
}

const newline = 10;

/** In an event stream each line counts by itself, because the stream may go on for any length of time. */
function limitBytes(byLine: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const lineEnd = byLine ? chunk.lastIndexOf(newline) : -1;
      size = lineEnd === -1 ? size + chunk.length : chunk.length - lineEnd;
      if (size > maxMessageBytes) controller.error(new Error(tooLong));
      else controller.enqueue(chunk);
    },
  });
}
