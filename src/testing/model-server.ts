import { checkOptions, optionsShape } from "../base/shape.ts";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Model, ModelEvent } from "../spec/model.ts";
import { listen, urlOf } from "../http/server.ts";
import type { Codec } from "../wire/codec.ts";
import { collect } from "../wire/answer.ts";
import { codecs } from "../wire/index.ts";
import { RequestError } from "../wire/failure.ts";
import { encodeFrame } from "../wire/sse.ts";
import { speakText } from "./text-mode.ts";

/** A model behind real HTTP on 127.0.0.1, in every wire at once. */
export interface ModelServer {
  /** `http://127.0.0.1:PORT/v1` */
  readonly baseUrl: string;
  close(): Promise<void>;
}

/** Options of `serveModel`. */
export interface ModelServerOptions {
  /** Writes calls and results as text, like a model without native calls. */
  readonly dialect?: string;
  /** Called with each request body, as it came. */
  readonly onRequest?: (wire: string, body: unknown) => void;
}

const serveModelShape = optionsShape<ModelServerOptions>({ dialect: "string", onRequest: "function" });

/** Puts a model behind all four wires on 127.0.0.1, for tests. */
export async function serveModel(model: Model, options: ModelServerOptions = {}): Promise<ModelServer> {
  checkOptions("serveModel", options, serveModelShape);
  const served = options.dialect === undefined ? model : speakText(model, options.dialect);
  const { createServer } = process.getBuiltinModule("node:http");
  const server: Server = createServer((request, response) => {
    answer(served, request, response, options).catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      // A request that the wire itself refuses is answered as its provider would, because clients read more than the
      // message.
      const known = RequestError.is(error) ? error : undefined;
      if (!response.headersSent) response.writeHead(known?.status ?? 400, { "content-type": "application/json" });
      response.end(JSON.stringify(known?.body ?? { error: { message, type: "invalid_request_error" } }));
    });
  });
  await listen(server, 0, "127.0.0.1");
  return {
    baseUrl: `${urlOf(server, "127.0.0.1")}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  model: Model,
  request: IncomingMessage,
  response: ServerResponse,
  options: ModelServerOptions,
): Promise<void> {
  if (request.method === "GET" && (request.url ?? "").endsWith("/models")) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ object: "list", data: [{ id: model.name, object: "model" }] }));
    return;
  }
  const codec = codecForPath(request.url ?? "");
  if (request.method !== "POST" || codec === undefined) {
    response.writeHead(404, { "content-type": "application/json" });
    response.end(
      JSON.stringify({ error: { message: `no model at ${request.method} ${request.url}`, type: "not_found_error" } }),
    );
    return;
  }
  const body: unknown = JSON.parse(await readBody(request));
  options.onRequest?.(codec.name, body);
  const asked = codec.decodeRequest(body);
  const stop = new AbortController();
  response.on("close", () => stop.abort());
  const events = model.ask(asked, stop.signal);
  const streams = asked.stream === true || (request.url ?? "").includes("streamGenerateContent");
  if (streams) return writeStream(codec, events, asked.model, response);
  const whole = JSON.stringify(codec.encodeAnswer(await collect(events), { model: asked.model }));
  response.writeHead(200, { "content-type": "application/json" });
  response.end(whole);
}

async function writeStream(
  codec: Codec,
  events: AsyncIterable<ModelEvent>,
  model: string,
  response: ServerResponse,
): Promise<void> {
  const encoder = codec.createEncoder({ model });
  for await (const event of events) {
    // Not before there is an answer, because a model that fails at once is an error and not an empty stream.
    if (!response.headersSent)
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    for (const frame of encoder.push(event)) response.write(encodeFrame(frame));
  }
  response.end();
}

function codecForPath(url: string): Codec | undefined {
  const path = url.split("?")[0]!;
  if (path.endsWith("/responses")) return codecs.responses;
  if (path.endsWith("/chat/completions")) return codecs.chat;
  if (path.endsWith("/messages")) return codecs.messages;
  if (path.includes(":streamGenerateContent") || path.includes(":generateContent")) return codecs.gemini;
  return undefined;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
