/** Shortening a history: by the model in words, by the provider in a sealed item, and back again. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { toMarkdown } from "../../src/cli/chat/transcript.ts";
import { createEngine } from "../../src/index.ts";
import { createHttpModel } from "../../src/model/http.ts";
import { createSession, type SessionOptions } from "../../src/session/index.ts";
import type { Item, Model, ModelRequest } from "../../src/spec/model.ts";
import { openJournal, readJournal } from "../../src/store/index.ts";
import { createScriptedModel, serveModel } from "../../src/testing/index.ts";
import { updatePlan } from "../../src/tools/index.ts";
import { answerToEvents } from "../../src/wire/answer.ts";
import { codecs } from "../../src/wire/index.ts";

const sealed: Item = {
  type: "compaction",
  opaque: { wire: "responses", kind: "encrypted_content", value: "c2VhbGVk" },
};

const isTrigger = (item: Item | undefined) => item?.type === "other" && item.raw["type"] === "compaction_trigger";

/** A model whose provider answers a trigger with `answer`, and everything else with words. */
function createProvider(answer: readonly Item[]): Model & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    name: "provider",
    requests,
    async *ask(request) {
      requests.push({ ...request, input: [...request.input] });
      const words: Item = {
        type: "message",
        role: "assistant",
        content: [{ type: "text", text: "a summary in words" }],
      };
      const items = isTrigger(request.input.at(-1)) ? answer : [words];
      yield* answerToEvents({ items, outcome: "ok", finish: "stop" });
    },
  };
}

function open(model: Model, options: Partial<SessionOptions> = {}) {
  const path = join(mkdtempSync(join(tmpdir(), "callgate-compact-")), "s.jsonl");
  const engine = createEngine({ tools: [updatePlan], approval: "never", sandbox: "full-access" });
  const session = createSession({
    id: "s",
    engine,
    model,
    tools: () => [],
    journal: openJournal(path),
    compaction: "provider",
    started: { wire: "responses" },
    ...options,
  });
  return { session, path };
}

const play = async (events: AsyncIterable<unknown>) => {
  for await (const _event of events) continue;
};

test("a provider that can is asked for a sealed short form, and gets it back with the next request", async () => {
  const model = createProvider([sealed]);
  const { session } = open(model);
  await play(session.send("find the fault"));
  await session.compact();
  expect(isTrigger(model.requests[1]!.input.at(-1))).toBe(true);
  expect(session.history).toEqual([
    { type: "message", role: "user", content: [{ type: "text", text: "find the fault" }] },
    sealed,
  ]);
  await play(session.send("go on"));
  expect(model.requests[2]!.input).toContainEqual(sealed);
});

test("over real HTTP the trigger and the sealed item are the provider's own", async () => {
  const bodies: unknown[] = [];
  const provider = await serveModel(createProvider([sealed]), { onRequest: (_wire, body) => bodies.push(body) });
  const model = createHttpModel({ codec: codecs.responses, baseUrl: provider.baseUrl, model: "m" });
  const { session } = open(model);
  await play(session.send("find the fault"));
  await session.compact();
  await play(session.send("go on"));
  expect(bodies[1]).toMatchObject({ input: [{}, {}, { type: "compaction_trigger" }] });
  expect(JSON.stringify(bodies[2])).toContain('"encrypted_content":"c2VhbGVk"');
  model.close();
  await provider.close();
});

test.each([
  ["nothing of the kind", [{ type: "message", role: "assistant", content: [{ type: "text", text: "what?" }] }]],
  ["two of them", [sealed, sealed]],
] as readonly (readonly [string, readonly Item[]])[])(
  "a provider that answers with %s is asked again, and then the model writes it",
  async (_what, answer) => {
    const model = createProvider(answer);
    const { session } = open(model);
    await play(session.send("find the fault"));
    await session.compact();
    expect(model.requests.map(({ input }) => isTrigger(input.at(-1)))).toEqual([false, true, true, false]);
    expect(session.history.at(-1)).toMatchObject({ type: "compaction", text: expect.stringContaining("in words") });
  },
);

test("the plan stays readable beside a sealed short form", async () => {
  const plan = { plan: [{ step: "mend it", status: "in_progress" }] };
  const scripted = createScriptedModel([{ calls: [{ name: "update_plan", input: plan }] }, { text: "ok" }]);
  const provider = createProvider([sealed]);
  const model: Model = {
    name: "both",
    ask: (request, signal) => (isTrigger(request.input.at(-1)) ? provider : scripted).ask(request, signal),
  };
  const { session } = open(model);
  await play(session.send("plan it"));
  await session.compact();
  expect(JSON.stringify(session.history.at(-1))).toContain("mend it");
});

test("on another wire the sealed short form is passed over, and the whole history is there again", async () => {
  const { session, path } = open(createProvider([sealed]));
  await play(session.send("find the fault"));
  const before = [...session.history];
  await session.compact();
  await session.close();
  const { records } = readJournal(path);
  const options = { records, journal: openJournal(path) };
  const same = open(createProvider([]), { ...options, started: { wire: "responses" } });
  expect(same.session.history).toContainEqual(sealed);
  const other = open(createProvider([]), { ...options, started: { wire: "chat" } });
  expect(other.session.history).toEqual(before);
});

test("show tells where the history was shortened, what was above it, and what the model is told instead", async () => {
  const { session, path } = open(createProvider([]), { compaction: "model" });
  await play(session.send("find the fault"));
  await session.compact();
  await session.close();
  const about = { id: "s", cwd: "/", startedAt: "", updatedAt: "", title: "t", path };
  const shown = toMarkdown(about, readJournal(path).records);
  expect(shown.indexOf("find the fault")).toBeLessThan(shown.indexOf("the history was shortened here"));
  expect(shown).toContain("> a summary in words");
});

test("a request longer than the window is cut, never lost, and one compaction is enough", async () => {
  const model = createProvider([]);
  const { session } = open(model, { compaction: "model", contextWindow: 2_000 });
  await play(session.send(`first words ${"and so on ".repeat(3_000)}`));
  const kept = JSON.stringify(session.history);
  expect(kept).toContain("first words");
  expect(kept).toContain("[… cut]");
  expect(model.requests).toHaveLength(2); // the summary, then the answer
});
