/** How long the first words of an answer stay in the gateway, for every pair of client and upstream wire. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../src/gateway/index.ts";
import type { ModelEvent } from "../src/spec/model.ts";
import type { WireName } from "../src/wire/codec.ts";
import { codecs } from "../src/wire/index.ts";
import { encodeSse } from "../src/wire/sse.ts";
import { type BenchRow, median } from "./measure.ts";

const wires = ["responses", "chat", "messages", "gemini"] as const satisfies readonly WireName[];
const words = "the first words";

/** An answer up to its first words, and the rest of it. */
function answerIn(wire: WireName): { readonly begin: string; readonly rest: string } {
  const encoder = codecs[wire].createEncoder({ model: "m", id: "a" });
  const message = { type: "message", role: "assistant" } as const;
  const write = (...events: readonly ModelEvent[]) => encodeSse(events.flatMap((event) => encoder.push(event)));
  const begin = write(
    { type: "answer.started", id: "a", model: "m" },
    { type: "item.started", index: 0, item: { ...message, content: [] } },
    { type: "item.delta", index: 0, field: "text", delta: words },
  );
  const rest = write(
    { type: "item.done", index: 0, item: { ...message, content: [{ type: "text", text: words }] } },
    { type: "answer.ended", answer: { outcome: "ok", finish: "stop", usage: { input: 1, output: 1 } } },
  );
  return { begin, rest: wire === "chat" ? `${rest}data: [DONE]\n\n` : rest };
}

function bodyFor(wire: WireName, model: string): object {
  const messages = [{ role: "user", content: "hi" }];
  if (wire === "gemini") return { contents: [{ role: "user", parts: [{ text: "hi" }] }] };
  if (wire === "responses") return { model, stream: true, store: false, input: "hi" };
  return { model, stream: true, messages, ...(wire === "messages" ? { max_tokens: 10 } : {}) };
}

const paths: Readonly<Record<WireName, (model: string) => string>> = {
  responses: () => "/v1/responses",
  chat: () => "/v1/chat/completions",
  messages: () => "/v1/messages",
  gemini: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
};

export async function firstText(rounds = 25): Promise<readonly BenchRow[]> {
  const answers = new Map(wires.map((wire) => [wire, answerIn(wire)]));
  let sentAt = 0;
  let open: { readonly response: ServerResponse; readonly rest: string } | undefined;
  const upstream = createServer((request, response) => {
    const wire = wires.find((one) => request.url?.startsWith(`/${one}/`)) ?? "chat";
    const { begin, rest } = answers.get(wire)!;
    request.resume();
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      open = { response, rest };
      sentAt = performance.now();
      response.write(begin);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const address = upstream.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const stateDir = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  const gateway = await startGateway({
    keys: "none",
    stateDir,
    // Another name than the client's, so that no pair goes through untouched.
    routes: wires.map((wire) => ({
      match: `on-${wire}`,
      targets: [{ baseUrl: `http://127.0.0.1:${port}/${wire}`, wire, model: "m" }],
    })),
  });
  const once = async (client: WireName, model: string): Promise<number> => {
    const response = await fetch(`${gateway.url}${paths[client](model)}`, {
      method: "POST",
      body: JSON.stringify(bodyFor(client, model)),
    });
    let seen = "";
    let took = Number.NaN;
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      seen += chunk;
      if (!Number.isNaN(took) || !seen.includes(words)) continue;
      took = performance.now() - sentAt;
      open?.response.end(open.rest);
    }
    return took;
  };
  const medians: number[] = [];
  for (const client of wires)
    for (const on of wires) {
      const times: number[] = [];
      for (let round = -5; round < rounds; round++) {
        const took = await once(client, `on-${on}`);
        if (round >= 0) times.push(took);
      }
      medians.push(median(times));
    }
  await gateway.close();
  upstream.close();
  upstream.closeAllConnections();
  rmSync(stateDir, { recursive: true, force: true });
  return [
    { name: "first words, from upstream to client: median of 16 pairs", value: median(medians), unit: "ms" },
    { name: "first words: the slowest pair", value: Math.max(...medians), unit: "ms", aim: "≤ 5" },
  ];
}
