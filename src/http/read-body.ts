/** A request's body, decompressed, within a bound that also holds for what it decompresses to. */
import type { IncomingMessage } from "node:http";
import type { Readable, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";

export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const source = decompress(request);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      request.unpipe();
      request.resume();
      throw new TooLarge(`The body is larger than ${Math.floor(maxBytes / 1024 / 1024)} MB.`);
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

function decompress(request: IncomingMessage): Readable {
  const encoding = request.headers["content-encoding"]?.toLowerCase() ?? "identity";
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding]?.() : undefined;
  if (decoder === undefined) return request;
  // An aborted request must end the reading of its body as well.
  request.on("error", (error) => decoder.destroy(error));
  return request.pipe(decoder);
}
