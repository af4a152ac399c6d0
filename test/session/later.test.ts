/** Questions that are answered later: an answer is for one call and exactly the question that was put. */
import { expect, test } from "vitest";
import { createLaterAnswers } from "../../src/session/later.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../../src/spec/stages.ts";

const { signal } = new AbortController();
const request = (id: string, hash: string, more: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
  call: { id, tool: "t", input: {} },
  reason: "r",
  access: {},
  grant: { policy: "workspace-write", confined: true, write: [], protect: [], mask: [], network: "off" },
  commands: [],
  hash,
  ...more,
});
const yes: ApprovalAnswer = { answer: "once" };
function later(
  answer: Awaited<ReturnType<Approver["ask"]>> = "later",
  open?: Parameters<typeof createLaterAnswers>[1],
) {
  const asked: string[] = [];
  const approver: Approver = { ask: async ({ hash }) => (asked.push(hash), answer), answerer: "p" as never };
  return { asked, book: createLaterAnswers(approver, open) };
}
const put = (id: string, hash: string, more = {}) =>
  ({ type: "approval.asked", id, request: request(id, hash, more) }) as never;

test("a question waits until it is answered, and its answer is given once the gate asks again", async () => {
  const { asked, book } = later();
  expect(book.isTold(put("c", "h"))).toBe(false);
  expect(await book.approver?.ask(request("c", "h"), signal)).toBe("later");
  expect(book.waiting()).toEqual(["c"]);
  expect(book.take("c", "h", yes)).toBe("taken");
  expect(book.waiting()).toEqual([]);
  expect(book.isTold(put("c", "h"))).toBe(true);
  expect(await book.approver?.ask(request("c", "h"), signal)).toEqual(yes);
  expect(asked).toEqual(["h"]);
  // That it was answered is on record already, once.
  const answered = { type: "approval.answered", id: "c" } as never;
  expect([book.isTold(answered), book.isTold(answered)]).toEqual([true, false]);
});

test("an answer to no question, to another call's, or to one that has changed is not taken", async () => {
  const { book, asked } = later();
  expect(book.take("c", "h", yes)).toBe("unknown");
  book.isTold(put("c", "h"));
  expect(book.take("d", "h", yes)).toBe("unknown");
  expect(book.take("c", "other", yes)).toBe("changed");
  expect(book.waiting()).toEqual(["c"]);
  expect(book.take("c", "h", yes)).toBe("taken");
  expect(book.take("c", "h", yes)).toBe("unknown");
  // What is asked now is not what was answered.
  expect(await book.approver?.ask(request("c", "new"), signal)).toBe("later");
  expect(asked).toEqual(["new"]);
});

test("a question that is put again is not told again; a changed one is", () => {
  const { book } = later();
  expect([book.isTold(put("c", "h")), book.isTold(put("c", "h")), book.isTold(put("c", "h2"))]).toEqual([
    false,
    true,
    false,
  ]);
  expect(book.take("c", "h", yes)).toBe("changed");
  expect(book.take("c", "h2", yes)).toBe("taken");
});

test("what is answered at once, ended or given up waits no longer", async () => {
  const { book } = later(yes);
  book.isTold(put("a", "h"));
  await book.approver?.ask(request("a", "h"), signal);
  expect(book.waiting()).toEqual([]);
  book.isTold(put("b", "h"));
  book.isTold({ type: "call.ended", call: { id: "b" } } as never);
  expect(book.waiting()).toEqual([]);
  book.isTold(put("c", "h"));
  book.forget();
  expect([book.waiting(), book.take("c", "h", yes)]).toEqual([[], "unknown"]);
});

test("what to keep of a held run cannot be answered later: it is asked while the run exists", () => {
  const { book } = later();
  book.isTold(put("c", "h", { effects: { list: [], lines: [] } }));
  expect(book.waiting()).toEqual([]);
});

test("questions and answers of a turn that was left open are still there", async () => {
  const open = { questions: new Map([["c", "h"]]), answers: new Map([["d", { hash: "g", answer: yes }]]) } as never;
  const { book, asked } = later("later", open);
  expect(book.waiting()).toEqual(["c"]);
  expect(await book.approver?.ask(request("d", "g"), signal)).toEqual(yes);
  expect(asked).toEqual([]);
  expect(book.approver?.answerer).toBe("p");
  expect(createLaterAnswers(undefined, undefined).approver).toBeUndefined();
});
