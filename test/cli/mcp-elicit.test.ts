/** Servers' questions, as whoever approves calls is asked them. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createElicit } from "../../src/cli/mcp/elicit.ts";
import { createEngine, type ApprovalAnswer, type ApprovalRequest } from "../../src/index.ts";

const engine = createEngine({ workspace: mkdtempSync(join(tmpdir(), "callgate-elicit-")) });
const { signal } = new AbortController();

function setUp(answer?: ApprovalAnswer) {
  const asked: ApprovalRequest[] = [];
  const warnings: string[] = [];
  const approver = {
    async ask(request: ApprovalRequest) {
      asked.push(request);
      return answer;
    },
  };
  const warn = (text: string) => void warnings.push(text);
  const elicit = createElicit({ engine, warn, approver: answer === undefined ? undefined : approver });
  return { elicit, asked, warnings };
}

const form = (properties: object, required: readonly string[] = []) =>
  ({
    server: "s",
    mode: "form",
    message: "Shall I?",
    schema: { type: "object", properties, required: [...required] } as never,
  }) as const;
const page = { server: "s", mode: "url", message: "Pay", url: "https://example.test/pay" } as const;

test("without anybody to ask, the answer is no", async () => {
  const { elicit } = setUp();
  expect(await elicit(page, signal)).toEqual({ action: "decline" });
  expect(await elicit(form({}), signal)).toEqual({ action: "decline" });
});

test("a page is shown with its whole address, and a yes means that it was opened", async () => {
  const { elicit, asked } = setUp({ answer: "once" });
  expect(await elicit(page, signal)).toEqual({ action: "accept" });
  expect(asked[0]?.reason).toContain("https://example.test/pay");
});

test("a form that can be sent as it is goes back with the values it has", async () => {
  const { elicit } = setUp({ answer: "once" });
  const color = { type: "string", default: "green" };
  expect(await elicit(form({ color }, ["color"]), signal)).toEqual({ action: "accept", content: { color: "green" } });
  expect(await elicit(form({ sure: { type: "boolean" } }, ["sure"]), signal)).toEqual({
    action: "accept",
    content: { sure: true },
  });
});

test("a form somebody would have to fill in is declined, and said", async () => {
  const { elicit, asked, warnings } = setUp({ answer: "once" });
  expect(await elicit(form({ password: { type: "string" } }, ["password"]), signal)).toEqual({ action: "decline" });
  expect(asked).toEqual([]);
  expect(warnings.join()).toContain("'s'");
});

test("a no is a no", async () => {
  const { elicit } = setUp({ answer: "no" });
  expect(await elicit(form({}), signal)).toEqual({ action: "decline" });
});
