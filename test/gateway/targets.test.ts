/** Routes to one model under several settings, and many conversations whose answers are written at the same time. */
import { expect, test } from "vitest";
import { readJournal } from "../../src/store/index.ts";
import { listSessions } from "../../src/store/sessions.ts";
import { text } from "../../src/base/content.ts";
import type { Model } from "../../src/spec/model.ts";
import { serveModel } from "../../src/testing/index.ts";
import { answerToEvents } from "../../src/wire/index.ts";
import { onTestFinished } from "vitest";
import { tempFolder } from "../cli/run.ts";
import { ask, gateway, question, scripted } from "./gateways.ts";

test("two routes to one model keep their own settings", async () => {
  const model = await scripted([{ text: "one" }, { text: "two" }]);
  const target = { baseUrl: model.baseUrl, wire: "chat", model: "m" };
  const url = await gateway({
    routes: [
      { match: "quick", targets: [{ ...target, reasoning: "low", apiKey: "key-of-quick" }] },
      { match: "deep", targets: [{ ...target, reasoning: "high", apiKey: "key-of-deep" }] },
    ],
  });
  await ask(url, "chat", { ...question("chat", false), model: "quick" });
  await ask(url, "chat", { ...question("chat", false), model: "deep" });
  expect(model.bodies).toMatchObject([{ reasoning_effort: "low" }, { reasoning_effort: "high" }]);
});

test("however many conversations are answered at once, each gets its answer and its journal", async () => {
  const count = 70;
  let asked = 0;
  let open = (): void => undefined;
  const all = new Promise<void>((resolve) => (open = resolve));
  const patient: Model = {
    name: "patient",
    async *ask() {
      if (++asked === count) open();
      await all;
      yield* answerToEvents({
        items: [{ type: "message", role: "assistant", content: [text("done")] }],
        outcome: "ok",
        finish: "stop",
      });
    },
  };
  const server = await serveModel(patient);
  onTestFinished(() => server.close());
  const stateDir = tempFolder("state");
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: server.baseUrl, wire: "messages", model: "m" }] }],
    stateDir,
  });
  const answers = await Promise.all(
    Array.from({ length: count }, (_, n) =>
      ask(url, "chat", question("chat", n % 2 === 0, `question ${n}`), { "session-id": `conversation-${n}` }),
    ),
  );
  expect(answers.map(({ status, answer }) => [status, answer.outcome])).toEqual(
    Array.from({ length: count }, () => [200, "ok"]),
  );
  const sessions = listSessions(stateDir);
  expect(sessions).toHaveLength(count);
  for (const { path } of sessions) expect(JSON.stringify(readJournal(path).records)).toContain('"text":"done"');
});
