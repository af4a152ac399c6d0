/**
 * Model answers for servers whose settings allow them to ask. Each request passes the gate like a
 * call, and goes to the session's own model.
 */
import { text, type Part } from "../../base/content.ts";
import { defined, type Json, type JsonObject } from "../../base/json.ts";
import type { McpHost } from "../../mcp/index.ts";
import type { Engine } from "../../router/engine.ts";
import type { Checked } from "../../spec/call.ts";
import type { Item, Model } from "../../spec/model.ts";
import type { AnyTool } from "../../spec/tool.ts";
import { collect } from "../../wire/answer.ts";

type Sample = NonNullable<McpHost["sample"]>;
type SampleRequest = Parameters<Sample>[1];

export interface SampleOptions {
  readonly engine: Engine;
  readonly model: () => Promise<Model>;
  readonly now?: () => number;
}

/** However often the gate says yes, a server must not be able to run a model for ever. */
const maxRequests = 50;
const maxTokens = 8_192;

export function createSample({ engine, model, now = Date.now }: SampleOptions): Sample {
  const counts = new Map<string, number>();
  return async (server, request, signal) => {
    const count = (counts.get(server) ?? 0) + 1;
    counts.set(server, count);
    if (count > maxRequests) throw new Error(`no more than ${maxRequests} requests are answered in one session`);
    const passed = await engine.gate.pass(toCall(server, `sampling_${server}_${count}`, request, now()), signal);
    if ("rewritten" in passed) throw new Error("a hook changed the request, so it was not sent");
    return answer(await model(), request, signal);
  };
}

/** What the gate, its rules and the person see: a call of something that no server can name a tool. */
function toCall(server: string, id: string, request: SampleRequest, askedAt: number): Checked {
  const origin = { server, name: "(sampling)" };
  const name = `${server}/${origin.name}`;
  const input = {
    ...defined({ system: request.systemPrompt }),
    messages: JSON.parse(JSON.stringify(request.messages)) as Json,
    maxTokens: request.maxTokens,
  } satisfies JsonObject;
  const tool: AnyTool = {
    name,
    description: "The server asks our model.",
    input: { type: "object" },
    mutates: true,
    group: server,
    origin,
    run: () => "",
  };
  const raw = JSON.stringify(input);
  const access = { servers: [origin] };
  return { id, name, kind: "function", arguments: raw, askedAt, tool, input, access, mutates: true, notes: [] };
}

async function answer(model: Model, request: SampleRequest, signal: AbortSignal): ReturnType<Sample> {
  const { systemPrompt, stopSequences = [] } = request;
  const { items, outcome, error, finish } = await collect(
    model.ask(
      {
        model: model.name,
        input: request.messages.map(toItem),
        tools: [],
        maxOutputTokens: Math.min(request.maxTokens, maxTokens),
        ...defined({ instructions: systemPrompt }),
      },
      signal,
    ),
  );
  if (outcome === "error") throw new Error(`the model could not be asked: ${error?.message ?? "no reason given"}`);
  const whole = items.flatMap((item) => (item.type === "message" ? item.content.map(wordsOf) : [])).join("");
  const ends = stopSequences.map((stop) => whole.indexOf(stop)).filter((at) => at !== -1);
  const cut = ends.length === 0 ? undefined : Math.min(...ends);
  return {
    model: model.name,
    role: "assistant",
    content: { type: "text", text: whole.slice(0, cut) },
    stopReason: cut !== undefined ? "stopSequence" : finish === "length" ? "maxTokens" : "endTurn",
  };
}

function toItem({ role, content }: SampleRequest["messages"][number]): Item {
  const blocks = Array.isArray(content) ? content : [content];
  return { type: "message", role, content: blocks.map(toPart) };
}

function toPart(block: Exclude<SampleRequest["messages"][number]["content"], readonly unknown[]>): Part {
  if (block.type === "text") return text(block.text);
  if (block.type === "image") return { type: "image", mediaType: block.mimeType, data: block.data };
  return text(`[${block.type}]`);
}

function wordsOf(part: Part): string {
  return part.type === "text" ? part.text : "";
}
