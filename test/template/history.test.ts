/** What we write for a model is what its own template writes: calls, ids, results, and whole requests. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import { encodeCalls, encodeResults, type Dialect } from "../../src/dialect/index.ts";
import { toDialect } from "../../src/dialect/dialects.ts";
import { spellId } from "../../src/dialect/write/call.ts";
import { createCompletionsCodec } from "../../src/model/completions.ts";
import { createProviderModel, type ProviderModelOptions } from "../../src/model/provider-model.ts";
import { createTextModel } from "../../src/model/text.ts";
import type { Item, ModelRequest } from "../../src/spec/model.ts";
import { inferHistoryForm, inferFromTemplate, renderTemplate, type TemplateProfile } from "../../src/template/index.ts";
import { agreement } from "../../src/template/infer.ts";
import { idOf, one, probeSets, probeTools, two, words } from "../../src/template/probe.ts";
import { createRenderings, turnOf } from "../../src/template/renderings.ts";
import { fixtures, shared } from "./fixtures.ts";

const shown = [...fixtures, ...shared].flatMap(({ name, source }) => {
  const profile = inferFromTemplate(source);
  if (!profile.calls || profile.dialect === null) return [];
  const dialect = toDialect(profile.dialect);
  return [{ name, source, profile, dialect }];
});

/** Where the dialect alone cannot know how this template writes. The lists may only shrink. */
const otherCalls: ReadonlyMap<string, string> = new Map([
  ["python-calls", "quotes twice where its family quotes once"],
  ["deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "leaves the section of a single call open"],
  ["unsloth-mistral-Devstral-Small-2507", "writes no ids; others of its family do"],
]);
const otherResults: ReadonlyMap<string, string> = new Map([
  ["list-in-tags", "a role of its own"],
  ["llama-bare", "a role of its own"],
  ["Bielik-11B-v3.0-Instruct", "marks results by a token of its own"],
  ["GigaChat3-10B-A1.8B", "a role of its own"],
  ["fireworks-ai-llama-3-firefunction-v2", "a role of its own"],
  ["meetkai-functionary-medium-v3.2", "a role of its own"],
  ["meta-llama-Llama-3.1-8B-Instruct", "a role of its own"],
  ["moonshotai-Kimi-K2", "writes the id it is given, not the one it wrote in the call"],
  ["openai-gpt-oss-120b", "writes a result as JSON"],
  ["unsloth-mistral-Devstral-Small-2507", "writes no ids; others of its family do"],
]);
/** A message of each result's own turn: several are never one text. */
const resultsApart: ReadonlyMap<string, string> = new Map([
  ["deepseek-fence", "a section for each result"],
  ["python-calls", "a turn for each result"],
  ["qwen3-coder-think", "a turn for each result"],
  ["CohereForAI-c4ai-command-r-plus-tool_use", "a turn for each result"],
  ["MiniMax-M1", "a line end of its own after each result"],
]);
/** Where plain messages cannot give the model its template's words, whatever is in them. */
const otherHistory: ReadonlyMap<string, string> = new Map([
  ["id-first", "puts words into a content of their own"],
  ["list-in-tags", "tells its tools behind the question"],
  ["Bielik-11B-v3.0-Instruct", "spaces: trims an answer's words, and puts a line end before calls"],
  ["CohereForAI-c4ai-command-r-plus-tool_use", "tells the form of calls again after every turn, if there are tools"],
  ["CohereForAI-c4ai-command-r7b-12-2024-tool_use", "puts words into a response of their own"],
  ["NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "spaces: trims an answer's words, and puts a line end after calls"],
  ["deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "leaves the section of a single call open"],
  ["fireworks-ai-llama-3-firefunction-v2", "spaces: trims an answer's words, and puts a space before calls"],
  ["meetkai-functionary-medium-v3.2", "puts words into a channel of their own"],
  ["openai-gpt-oss-120b", "puts words into a channel of their own"],
  ["upstage-Solar-Open-100B", "puts words into a content of their own"],
]);

describe.each(shown)("$name", ({ name, source, profile, dialect }) => {
  const renderings = createRenderings(source, {}, {});
  const prompt = renderings.get("gen") ?? "";
  const calls = (set: typeof one) =>
    set.map((call, index) => ({
      name: call.name,
      id: idOf(call, index, renderings.manner),
      arguments: JSON.stringify(call.arguments),
    }));

  test("calls are written as the template writes them, one and several", () => {
    const agrees = probeSets
      .filter(({ name: set }) => set === "one" || (set === "two" && profile.parallel))
      .every((set) => {
        const turn = turnOf(renderings.ofSet(set)!, prompt, renderings.get("text"));
        return agreement(turn.header + turn.rest, encodeCalls(dialect, calls(set.calls), probeTools)) > 0;
      });
    expect(agrees, otherCalls.get(name)).toBe(!otherCalls.has(name));
  });

  test("results are written as the template writes them, one and several", () => {
    const written = (count: number) =>
      encodeResults(
        dialect,
        calls(two.slice(0, count)).map(({ name: tool, id }, index) => {
          return { name: tool, id, text: index === 0 ? words.result : words.second, ok: true };
        }),
      );
    const single = agreement(renderings.get("res") ?? "", written(1)) > 0;
    expect(single, otherResults.get(name)).toBe(!otherResults.has(name));
    if (!single || !profile.parallel) return;
    expect(agreement(renderings.get("res2") ?? "", written(2)) > 0, resultsApart.get(name)).toBe(
      !resultsApart.has(name),
    );
  });

  test("a history of plain messages in the template's own form renders as native messages do", () => {
    const { agrees } = inferHistoryForm(source, dialect);
    const reason = otherHistory.get(name);
    expect(agrees, reason).toBe(reason === undefined ? "exact" : reason.startsWith("spaces") ? "spaces" : "no");
  });
});

/** A server that has nothing to say and keeps what it was asked. */
let asked: Record<string, unknown> = {};
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")));
  request.on("end", () => {
    asked = JSON.parse(body) as Record<string, unknown>;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const choice = request.url?.endsWith("/completions") === true ? { text: "fine", delta: { content: "fine" } } : {};
    response.end(
      `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: "stop", ...choice }] })}\n\ndata: [DONE]\n\n`,
    );
  });
});
beforeAll(async () => new Promise<void>((done) => server.listen(0, "127.0.0.1", done)));
afterAll(() => server.close());

const offered = ["probe_alpha", "probe_beta"].map((name) => ({
  name,
  description: `Does ${name}.`,
  parameters: {
    type: "object",
    properties: {
      qzpath: { type: "string", description: "A path." },
      qztext: { type: "string", description: "A text." },
      qzcount: { type: "integer", description: "A count." },
      qzflag: { type: "boolean", description: "A flag." },
    },
    required: ["qzpath"],
  },
}));

/** The conversation in our own items, under ids that no template wrote. */
function conversation(parallel: boolean): ModelRequest {
  const calls = parallel ? two : one;
  const input: Item[] = [
    { type: "message", role: "user", content: [text(words.question)] },
    ...calls.map((call, index): Item => {
      const id = `call_${index}_of_another_model`;
      return {
        type: "call",
        kind: "function",
        id,
        name: call.name,
        arguments: JSON.stringify(call.arguments),
        complete: true,
      };
    }),
    ...calls.map((call, index): Item => {
      const callId = `call_${index}_of_another_model`;
      const content = [text(index === 0 ? words.result : words.second)];
      return { type: "result", kind: "function", callId, name: call.name, content, ok: true };
    }),
  ];
  const tools = offered.map((tool) => ({ kind: "function", ...tool }) as const);
  return { model: "m", input, tools };
}

const now = new Date(2026, 0, 2, 3, 4, 5);

interface Prompt {
  readonly messages: readonly object[];
  readonly tools: readonly { readonly function: object }[];
}

/** As a server renders what a client sent. */
function render(source: string, { messages, tools }: Prompt): string {
  return renderTemplate(source, {
    messages,
    tools,
    functions: JSON.stringify(tools.map((tool) => tool.function)),
    datetime: "2026-01-02",
    add_generation_prompt: true,
    bos_token: "",
    eos_token: "",
    now,
  });
}

/** What a client of the model's own would send, arguments in the form that the template wants. */
function nativePrompt({ parallel, arguments: form }: TemplateProfile, dialect: Dialect): Prompt {
  const calls = (parallel ? two : one).map((call, index) => {
    const id = spellId(dialect, `call_${index}_of_another_model`, call.name, index);
    return { ...call, id, result: index === 0 ? words.result : words.second };
  });
  return {
    messages: [
      { role: "user", content: words.question },
      {
        role: "assistant",
        content: "",
        tool_calls: calls.map(({ id, name, arguments: given }) => ({
          id,
          type: "function",
          function: { name, arguments: form === "text" ? JSON.stringify(given) : given },
        })),
      },
      ...calls.map(({ id, name, result }) => ({ role: "tool", tool_call_id: id, name, content: result })),
    ],
    tools: offered.map((tool) => ({ type: "function", function: tool })),
  };
}

/** Servers give templates the arguments as objects, where the template does not want the text. */
function asServer({ messages, tools }: Record<string, unknown>, { arguments: form }: TemplateProfile): Prompt {
  const parsed = JSON.parse(JSON.stringify({ messages, tools }), (key, value: unknown) =>
    key === "arguments" && form !== "text" && typeof value === "string" ? (JSON.parse(value) as unknown) : value,
  ) as Prompt;
  return parsed;
}

const told = shown.filter(({ profile }) => profile.tools);

test.each(told)("$name: a completion endpoint gets the text of the template's own rendering", async (model) => {
  const { source, profile, dialect } = model;
  const codec = createCompletionsCodec({ template: source, profile, dialect, now: () => now });
  await ask(model, { codec });
  expect(asked["prompt"]).toBe(render(source, nativePrompt(profile, dialect)));
});

test.each(told)("$name: a chat endpoint that only writes text gets what renders to the same", async (model) => {
  await ask(model, {});
  expect(render(model.source, asServer(asked, model.profile))).toBe(
    render(model.source, nativePrompt(model.profile, model.dialect)),
  );
});

async function ask({ profile, dialect }: (typeof shown)[number], more: Pick<ProviderModelOptions, "codec">) {
  const { port } = server.address() as AddressInfo;
  const http = await createProviderModel({
    model: "m",
    wire: "chat",
    baseUrl: `http://127.0.0.1:${port}/v1`,
    env: {},
    quirks: { emptyContent: true, resultNames: true },
    ...more,
  });
  const speaks = createTextModel(http, dialect, { native: true });
  let said = 0;
  for await (const event of speaks.ask(conversation(profile.parallel), new AbortController().signal))
    if (event.type === "item.done") said++;
  expect(said).toBe(1);
  http.close();
}
