/** How a handler asks while it runs: through whoever can answer, and with a reason where nobody can. */
import { expect, test } from "vitest";
import { createAsk } from "../../src/runtime/ask.ts";
import type { Answerer, QuestionRequest } from "../../src/spec/question.ts";

const call = { id: "c1", name: "t" } as unknown as QuestionRequest["call"];
const { signal } = new AbortController();
const form = { kind: "form", message: "Name?", fields: { type: "object" } } as const;

test("where nobody can answer, a question ends the call and says which kinds were asked", async () => {
  const ask = createAsk(call, undefined, signal);
  await expect(ask({ name: form, where: { kind: "folders" } })).rejects.toMatchObject({
    code: expect.any(String),
    message: expect.stringMatching(/form|folders|ask/i),
  });
  expect(ask.can("form")).toBe(false);
});

test("an answer is the answerer's, who is told the call, the questions and when to stop", async () => {
  const heard: unknown[] = [];
  const answerer: Answerer = {
    can: (id, kind) => id === "c1" && kind === "form",
    async answer(request, stop) {
      heard.push(request, stop);
      return { name: { action: "accept", content: { name: "Ada" } } };
    },
  } as Answerer;
  const ask = createAsk(call, answerer, signal);
  expect(await ask({ name: form })).toEqual({ name: { action: "accept", content: { name: "Ada" } } });
  expect(heard).toEqual([{ call, questions: { name: form } }, signal]);
  expect([ask.can("form"), ask.can("page")]).toEqual([true, false]);
});

test("no answer is no yes: the call ends as one that needs a person", async () => {
  const silent = { can: () => true, answer: async () => undefined } as unknown as Answerer;
  await expect(createAsk(call, silent, signal)({ name: form })).rejects.toMatchObject({
    code: "needs_approval",
    hint: expect.stringContaining("whether they are there"),
  });
});
