import { expect, test } from "vitest";
import { toEntries } from "../../src/cli/chat/transcript.ts";
import type { StoredRecord } from "../../src/store/index.ts";

test("a person's answers are told in words", () => {
  const answers = [{ answer: "once" }, { answer: "no", message: "use the cache" }, undefined];
  const records = answers.map(
    (answer, n) => ({ n, at: n, type: "approval.answered", id: "c", answer }) as StoredRecord,
  );
  const told = toEntries(records).map(({ title, body }) => `${title}${body}`);
  expect(told[0]).toContain("you said yes, once");
  expect(told[1]).toContain("you said no: use the cache");
  expect(told[2]).toContain("nobody to ask");
});
