/** A request's body, decompressed, within a bound that also holds for what it decompresses to. */
import type { IncomingMessage } from "node:http";
import type { Readable, Transform } from "node:stream";
import * as zlib from "node:zlib";

export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/** A body in a form that cannot be unpacked here. */
export class Unreadable extends Error {
  override readonly name = "Unreadable";
  readonly status: 400 | 415;

  constructor(status: 400 | 415, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
  }
}

export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const source = decompress(request);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) {
        request.unpipe();
        request.resume();
        throw new TooLarge(`The body is larger than ${Math.floor(maxBytes / 1024 / 1024)} MB.`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    if (source === request || error instanceof TooLarge) throw error;
    throw new Unreadable(400, `The body is not packed as its content-encoding says.`, error);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

/** Newer Node versions know zstd. */
const createZstdDecompress = (zlib as { readonly createZstdDecompress?: () => Transform }).createZstdDecompress;

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: zlib.createGunzip,
  "x-gzip": zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
  ...(createZstdDecompress === undefined ? {} : { zstd: createZstdDecompress }),
};

function decompress(request: IncomingMessage): Readable {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return request;
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding]?.() : undefined;
  if (decoder === undefined) {
    const known = Object.keys(decoders).join(", ");
    throw new Unreadable(
      415,
      `A body packed with '${encoding}' cannot be read here: send it as it is, or as ${known}.`,
    );
  }
  // An aborted request must end the reading of its body as well.
  request.on("error", (error) => decoder.destroy(error));
  return request.pipe(decoder);
}
