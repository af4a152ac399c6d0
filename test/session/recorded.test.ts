/** What real servers have sent, as a session's first answer: nothing half runs, nothing runs twice, and the request after it is sound. */
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isObject } from "../../src/base/json.ts";
import { createEngine, defineTool } from "../../src/index.ts";
import { createHttpModel } from "../../src/model/http.ts";
import { createSession, type SessionEvent } from "../../src/session/index.ts";
import type { Answer } from "../../src/spec/model.ts";
import { toToolSpecs } from "../../src/registry/tool-spec.ts";
import { answerToEvents } from "../../src/wire/answer.ts";
import { codecs, type WireName } from "../../src/wire/index.ts";
import { encodeFrame } from "../../src/wire/sse.ts";
import { recordedStreams } from "../wire/streams.ts";

const workspace = mkdtempSync(join(tmpdir(), "callgate-recorded-"));

interface Recorded {
  readonly tools: readonly string[];
  readonly expect: {
    readonly outcome: string;
    readonly calls: readonly {
      readonly name: string;
      readonly kind: string;
      readonly input: unknown;
      readonly complete: boolean;
    }[];
  };
}

const streams = (["responses", "chat", "messages", "gemini"] as const).flatMap((wire) =>
  recordedStreams(wire).map((stream) => [wire, stream.name, stream] as const),
);

/** The recorded answer first, then a plain end. */
async function serve(wire: WireName, body: Uint8Array) {
  const bodies: unknown[] = [];
  const last: Answer = {
    items: [{ type: "message", role: "assistant", content: [{ type: "text", text: "Done." }] }],
    outcome: "ok",
    finish: "stop",
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString("utf8")));
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (bodies.length === 1) return response.end(body);
      const encoder = codecs[wire].createEncoder({ model: "m" });
      const frames = [...answerToEvents(last)].flatMap((event) => encoder.push(event));
      return response.end(frames.map(encodeFrame).join(""));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { bodies, server, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

test.each(streams)("%s %s drives a whole turn", async (wire, name, stream) => {
  // The expectations have the form that `callgate decode` prints.
  const recorded = stream as unknown as Recorded;
  const { server, bodies, baseUrl } = await serve(wire, stream.body);
  const ran: string[] = [];
  const tools = recorded.tools.map((tool) =>
    defineTool({
      name: tool,
      description: tool,
      input: {},
      parallel: true,
      run: (_input, ctx) => {
        ran.push(ctx.callId);
        return "ok";
      },
    }),
  );
  const engine = createEngine({ tools, workspace, approval: "never", sandbox: "full-access" });
  const model = createHttpModel({ codec: codecs[wire], baseUrl, model: "m", retries: 0 });
  const session = createSession({
    id: name,
    engine,
    model,
    tools: () => toToolSpecs(engine.registry.list()),
    limits: { maxRequests: 3 },
  });
  const events: SessionEvent[] = [];
  for await (const event of session.send("go")) events.push(event);
  await session.close();
  await engine.close();
  model.close();
  server.close();

  expect(new Set(ran).size).toBe(ran.length);
  const whole = recorded.expect.calls.filter(({ complete }) => complete);
  expect(ran.length).toBeLessThanOrEqual(whole.length);
  if (recorded.expect.outcome === "truncated" || recorded.expect.outcome === "error") expect(ran).toEqual([]);
  const runnable = whole.filter(
    (call) => recorded.tools.includes(call.name) && call.kind === "function" && isObject(call.input),
  );
  if (recorded.expect.outcome === "ok") expect(ran.length).toBeGreaterThanOrEqual(runnable.length);
  const asked = session.history.flatMap((item) => (item.type === "call" ? [item.id] : []));
  const told = session.history.flatMap((item) => (item.type === "result" ? [item.callId] : []));
  expect(told).toEqual(asked);
  expect(events.at(-1)).toMatchObject({ type: "turn.ended" });
  if (asked.length > 0) {
    // The next request says of each call what became of it, in the wire's own words.
    const { input } = codecs[wire].decodeRequest(bodies[1]);
    const sent = (type: string) => input.filter((item) => item.type === type).length;
    expect(sent("result")).toBe(sent("call"));
    expect(events.at(-1)).toMatchObject({ reason: "done", text: "Done." });
  }
});
