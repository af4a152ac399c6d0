/** Gateways and upstreams for the tests: real HTTP on loopback, both ways. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { type GatewayOptions, startGateway } from "../../src/gateway/index.ts";
import { isObject, type Json } from "../../src/base/json.ts";
import type { Answer } from "../../src/spec/model.ts";
import { createScriptedModel, type ScriptedModel, type ScriptedStep, serveModel } from "../../src/testing/index.ts";
import type { WireName } from "../../src/wire/codec.ts";
import { decodeRecording, codecs } from "../../src/wire/index.ts";

export type Body = Record<string, Json>;

export const wires = ["responses", "chat", "messages", "gemini"] as const satisfies readonly WireName[];

/** A gateway without a key, closed when the test ends. */
type SomeOptions = Partial<GatewayOptions> & Pick<GatewayOptions, "routes">;

export async function gateway(options: SomeOptions): Promise<string> {
  return (await openGateway(options)).url;
}

export async function openGateway(options: SomeOptions) {
  const opened = await startGateway({ keys: "none", ...options });
  const close = async () => {
    void opened.close();
    await opened.close();
  };
  onTestFinished(close);
  return { url: opened.url, close };
}

/** A model that says what the test tells it, behind real HTTP in every wire. */
export async function scripted(
  steps: readonly ScriptedStep[],
  dialect?: string,
): Promise<ScriptedModel & { readonly baseUrl: string; readonly bodies: Json[] }> {
  const model = createScriptedModel(steps);
  const bodies: Json[] = [];
  const server = await serveModel(model, {
    onRequest: (_wire, body) => void bodies.push(body as Json),
    ...(dialect === undefined ? {} : { dialect }),
  });
  onTestFinished(() => server.close());
  return { ...model, baseUrl: server.baseUrl, bodies };
}

export interface RawRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An upstream that answers byte by byte as the test says. */
export async function rawUpstream(
  answer: (request: RawRequest, response: ServerResponse) => void,
): Promise<{ readonly baseUrl: string; readonly requests: RawRequest[] }> {
  const requests: RawRequest[] = [];
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const read = { url: request.url ?? "", headers: request.headers, body };
      requests.push(read);
      answer(read, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { baseUrl: `http://127.0.0.1:${port}/v1`, requests };
}

/** Where a client of this wire sends its question. */
export function pathOf(wire: WireName, stream: boolean, model = "m"): string {
  if (wire === "gemini")
    return `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
  return { responses: "/v1/responses", chat: "/v1/chat/completions", messages: "/v1/messages" }[wire];
}

const weather = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A question with one tool, in the client's own wire. */
export function question(wire: WireName, stream: boolean, text = "hi"): Record<string, Json> {
  switch (wire) {
    case "responses":
      return {
        model: "m",
        stream,
        input: text,
        tools: [{ type: "function", name: "weather", parameters: weather, strict: false }],
      };
    case "chat":
      return {
        model: "m",
        stream,
        messages: [{ role: "user", content: text }],
        tools: [{ type: "function", function: { name: "weather", parameters: weather } }],
      };
    case "messages":
      return {
        model: "m",
        stream,
        max_tokens: 100,
        messages: [{ role: "user", content: text }],
        tools: [{ name: "weather", input_schema: weather }],
      };
    case "gemini":
      return {
        contents: [{ role: "user", parts: [{ text }] }],
        tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: weather }] }],
      };
  }
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly answer: Answer;
}

/** Asks as a client of this wire would, and reads the answer with that wire's decoder. */
export async function ask(
  url: string,
  wire: WireName,
  body: Record<string, Json> = question(wire, true),
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  const stream = wire === "gemini" ? body["stream"] !== false : body["stream"] === true;
  const { stream: _stream, model = "m", ...rest } = body;
  const response = await fetch(`${url}${pathOf(wire, stream, String(model))}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(wire === "gemini" ? rest : body),
  });
  const text = await response.text();
  const answer = decodeRecording(codecs[wire], [text], { declared: ["weather"] });
  return { status: response.status, headers: response.headers, text, answer };
}

/** The client's next request: its own answer back, as it came, with the result of the call. */
export function goOn(
  wire: WireName,
  first: Body,
  replied: Json,
  result: string,
  change = (item: Json): Json | undefined => item,
): Body {
  const reply = replied as Body;
  const kept = (items: Json | undefined) => (Array.isArray(items) ? items : []).flatMap((item) => change(item) ?? []);
  const idIn = (items: readonly Json[], type: string, name: string) =>
    String(items.flatMap((item) => (isObject(item) && item["type"] === type ? [item[name]] : []))[0]);
  switch (wire) {
    case "responses": {
      const output = kept(reply["output"]);
      const call_id = idIn(output, "function_call", "call_id");
      const { input } = first;
      const asked = Array.isArray(input) ? input : [{ type: "message", role: "user", content: input ?? "" }];
      return { ...first, input: [...asked, ...output, { type: "function_call_output", call_id, output: result }] };
    }
    case "chat": {
      const choice = (reply["choices"] as Body[])[0]!;
      const message = choice["message"] as Body;
      const tool_call_id = String((message["tool_calls"] as Body[])[0]!["id"]);
      const said = change(message) ?? message;
      return {
        ...first,
        messages: [...(first["messages"] as Json[]), said, { role: "tool", tool_call_id, content: result }],
      };
    }
    case "messages": {
      const content = kept(reply["content"]);
      const tool_use_id = idIn(content, "tool_use", "id");
      const results: Json = [{ type: "tool_result", tool_use_id, content: result }];
      return {
        ...first,
        messages: [
          ...(first["messages"] as Json[]),
          { role: "assistant", content },
          { role: "user", content: results },
        ],
      };
    }
    case "gemini": {
      const said = ((reply["candidates"] as Body[])[0]!["content"] ?? {}) as Body;
      const parts = kept(said["parts"]);
      const response: Json = { functionResponse: { name: "weather", response: { output: result } } };
      return {
        ...first,
        contents: [...(first["contents"] as Json[]), { role: "model", parts }, { role: "user", parts: [response] }],
      };
    }
  }
}
