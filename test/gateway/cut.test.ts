/**
 * An upstream's answer that is cut at any byte: no call of it reaches a client as one to run, and the client gets an
 * end. With the real encoders and decoders for every pair of wires, and a sample over real sockets.
 * CALLGATE_CUTS=every cuts at every single byte (a minute); by default each frame is cut in a few places.
 */
import { describe, expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import { holdCalls } from "../../src/gateway/untouched.ts";
import type { Answer, CallItem } from "../../src/spec/model.ts";
import { createStreamReader } from "../../src/wire/stream.ts";
import { answerToEvents, decodeRecording, codecs } from "../../src/wire/index.ts";
import { encodeFrame } from "../../src/wire/sse.ts";
import type { WireName } from "../../src/wire/codec.ts";
import { ask, gateway, question, rawUpstream, wires } from "./gateways.ts";

const call = (id: string, city: string): CallItem => ({
  type: "call",
  kind: "function",
  id,
  name: "weather",
  arguments: JSON.stringify({ city }),
  complete: true,
});
const answer: Answer = {
  id: "a1",
  model: "m",
  items: [
    { type: "reasoning", text: "Which city?" },
    { type: "message", role: "assistant", content: [text("Ich schaue nach: „Köln“.")] },
    call("call_1", "Köln"),
    call("call_2", "東京"),
  ],
  outcome: "ok",
  finish: "tool_calls",
  usage: { input: 10, output: 5 },
};

function recorded(wire: WireName): Buffer {
  const encoder = codecs[wire].createEncoder({ model: "m", id: "a1", createdAt: 1 });
  const frames = answerToEvents(answer).flatMap((event) => encoder.push(event));
  return Buffer.from(frames.map(encodeFrame).join(""));
}

/** Every byte, or the places where a cut is most likely to be taken for an end. */
function cuts(bytes: Buffer): readonly number[] {
  const all = Array.from({ length: bytes.length }, (_, at) => at);
  if (process.env["CALLGATE_CUTS"] === "every") return all;
  const isTelling = (at: number) => /[}\]"\n]/.test(String.fromCharCode(bytes[at - 1] ?? 0));
  return all.filter((at) => at % 41 === 0 || (isTelling(at) && at % 5 === 0) || bytes.length - at < 12);
}

function callsOf(read: Answer): readonly CallItem[] {
  return read.items.flatMap((item) => (item.type === "call" && item.complete ? [item] : []));
}

/** The calls that a client would run: all of a whole answer, or none. */
function checkCalls(client: WireName, written: string, where: string): void {
  const read = decodeRecording(codecs[client], [written], { declared: ["weather"] });
  const calls = callsOf(read).map(({ name, arguments: given }) => [name, JSON.parse(given)]);
  if (read.outcome === "ok")
    expect(calls, where).toEqual([
      ["weather", { city: "Köln" }],
      ["weather", { city: "東京" }],
    ]);
  else expect(calls, where).toEqual([]);
  expect(read.outcome, where).not.toBe("truncated");
}

describe.each(wires)("an answer in %s that is cut at any byte", (upstream) => {
  const bytes = recorded(upstream);

  test.each(wires)("gives a %s client no call to run, and an end", (client) => {
    for (const at of cuts(bytes)) {
      const reader = createStreamReader(codecs[upstream]);
      const encoder = codecs[client].createEncoder({ model: "m" });
      const events = [...reader.push(bytes.subarray(0, at)), ...reader.end()];
      const written = events.flatMap((event) => encoder.push(event)).map(encodeFrame);
      checkCalls(client, written.join(""), `cut at ${at} of ${bytes.length}`);
    }
  });

  test("gives none either when it goes through as it is", async () => {
    for (const at of cuts(bytes)) {
      const pieces = [bytes.subarray(0, Math.floor(at / 2)), bytes.subarray(Math.floor(at / 2), at)];
      const body = (async function* () {
        yield* pieces;
      })();
      const broken = () => codecs[upstream].encodeError({ type: "network", message: "It broke off." }).body;
      let written = "";
      for await (const piece of holdCalls(body, upstream, broken)) written += Buffer.from(piece).toString("latin1");
      checkCalls(upstream, Buffer.from(written, "latin1").toString("utf8"), `cut at ${at} of ${bytes.length}`);
    }
  });

  test("does so over real sockets, through the gateway", async () => {
    let at = 0;
    const server = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(bytes.subarray(0, at), () => response.destroy());
    });
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: server.baseUrl, wire: upstream, model: "real" }] }],
    });
    for (const client of wires) {
      for (const share of [0.45, 0.8, 0.97]) {
        at = Math.floor(bytes.length * share);
        const { text: written } = await ask(url, client, question(client, true));
        checkCalls(client, written, `${client}, cut at ${at}`);
      }
    }
  });
});
