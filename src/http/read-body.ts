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

/** By its events: a stream's own iterator costs more than reading a short body. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const source = decompress(request);
    const chunks: Buffer[] = [];
    let size = 0;
    source.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) return void chunks.push(chunk);
      request.unpipe();
      source.removeAllListeners("data");
      request.resume();
      reject(new TooLarge(`The body is larger than ${Math.floor(maxBytes / 1024 / 1024)} MB.`));
    });
    source.on("end", () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)));
    source.on("error", (error) =>
      reject(
        source === request ? error : new Unreadable(400, `The body is not packed as its content-encoding says.`, error),
      ),
    );
    // After its end or an error this changes nothing.
    request.on("close", () => (request.complete ? undefined : reject(new Error("the request broke off"))));
  });
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
