/** Servers' questions as a person is asked them: forms field by field, pages by address, nothing without a yes. */
import { expect, test } from "vitest";
import { askPerson } from "../../src/cli/mcp/ask.ts";
import { readFields } from "../../src/cli/mcp/form.ts";
import type { Asking } from "../../src/cli/chat/person.ts";
import type { Elicitation } from "../../src/mcp/index.ts";

/** A person with a list of answers: a choice by its label, or a line. What they saw is kept. */
function person(...answers: readonly (string | undefined)[]) {
  const seen: string[] = [];
  const left = [...answers];
  const asking: Asking = {
    async choose(words, choices) {
      seen.push(`${words}\n${choices.map(({ label }) => label).join("|")}`);
      const answer = left.shift();
      if (answer === undefined) return undefined;
      const chosen = choices.find(({ label }) => label.endsWith(answer));
      if (chosen === undefined) throw new Error(`no '${answer}' in ${choices.map(({ label }) => label).join(", ")}`);
      return chosen.value;
    },
    async write(words) {
      seen.push(words);
      return left.shift();
    },
  };
  return { asking, seen, left };
}

const form = (properties: object, required: readonly string[] = [], message = "Please"): Elicitation => ({
  server: "s",
  mode: "form",
  message,
  schema: { type: "object", properties, required: [...required] } as never,
});
const page = (url: string): Elicitation => ({ server: "s", mode: "url", message: "Pay", url });
const quiet = { openPage: () => undefined };

const everyKind = {
  name: { type: "string", minLength: 2 },
  mail: { type: "string", format: "email" },
  age: { type: "integer", minimum: 18, maximum: 99 },
  sure: { type: "boolean", default: false },
  colour: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
  size: { type: "string", oneOf: [{ const: "l", title: "Large" }] },
  extras: {
    type: "array",
    minItems: 1,
    items: {
      anyOf: [
        { const: "a", title: "Air" },
        { const: "b", title: "Bar" },
      ],
    },
  },
};

test("each kind of field is asked for in its own way, wrong answers are asked again, and the whole is shown before it goes", async () => {
  const { asking, seen, left } = person(
    "Answer",
    "A",
    "Ada",
    "nowhere",
    "ada@example.test",
    "12",
    "1.5",
    "36",
    "Yes",
    "Green",
    "Large",
    "Done",
    "Bar",
    "Air",
    "Bar",
    "Done",
    "Send",
  );
  const answer = await askPerson(form(everyKind, Object.keys(everyKind)), asking, quiet);
  expect(answer).toEqual({
    action: "accept",
    content: { name: "Ada", mail: "ada@example.test", age: 36, sure: true, colour: "g", size: "l", extras: ["a"] },
  });
  expect(left).toEqual([]);
  expect(seen.join("\n")).toMatch(
    /at least 2 characters.*e-mail address.*at least 18.*whole number.*at least 1 choices/s,
  );
  expect(seen.at(-1)).toContain("│ age: 36");
});

test("defaults are taken with an empty line, optional fields may be left out, and a form that is complete can go as it is", async () => {
  const fields = { a: { type: "string", default: "x" }, b: { type: "number" }, c: { type: "boolean" } };
  const filled = person("Answer", "", "", "(leave it out)", "Send");
  expect(await askPerson(form(fields), filled.asking, quiet)).toEqual({ action: "accept", content: { a: "x" } });
  const asIs = person("Send it with the values it has");
  expect(await askPerson(form(fields), asIs.asking, quiet)).toEqual({ action: "accept", content: { a: "x" } });
});

test("no is a no at every step, and going away cancels", async () => {
  const ask = (...answers: readonly (string | undefined)[]) =>
    askPerson(form({ a: { type: "string" } }, ["a"]), person(...answers).asking, quiet);
  expect(await ask("No")).toEqual({ action: "decline" });
  expect(await ask("Answer", "x", "No")).toEqual({ action: "decline" });
  expect(await ask(undefined)).toEqual({ action: "cancel" });
  expect(await ask("Answer", undefined)).toEqual({ action: "cancel" });
});

test("a form that asks for a secret says so before anything is written, and no word of the server's acts on the terminal", async () => {
  const esc = "\u001B[2J";
  const fields = { api_key: { type: "string", title: `Key${esc}`, description: `x${esc}\n> 1` } };
  const { asking, seen } = person("No");
  await askPerson(form(fields, ["api_key"], "line\n> 1 Yes"), asking, quiet);
  expect(seen[0]).toContain("seems to ask for a secret");
  expect(seen[0]).not.toContain("\u001B");
  expect(seen[0]).toContain("  │ > 1 Yes");
});

test.each([
  ["token_count", false],
  ["api_token", true],
  ["password", true],
  ["city", false],
])("%s is a secret: %s", (name, isSecret) => {
  const type = name === "token_count" ? "number" : "string";
  expect(readFields({ type: "object", properties: { [name]: { type } } })[0]?.isSecret).toBe(isSecret);
});

test("a page is shown with its host and only opened by somebody who chose so", async () => {
  const opened: string[] = [];
  const at = { openPage: (url: URL) => void opened.push(url.href) };
  const self = person("I open it myself");
  expect(await askPerson(page("https://pay.example/x?y=1"), self.asking, at)).toEqual({ action: "accept" });
  expect(self.seen[0]).toMatch(/pay\.example\n.*https:\/\/pay\.example\/x\?y=1/s);
  expect(await askPerson(page("https://pay.example/"), person("No").asking, at)).toEqual({ action: "decline" });
  expect(await askPerson(page("https://pay.example/"), person(undefined).asking, at)).toEqual({ action: "cancel" });
  expect(opened).toEqual([]);
  await askPerson(page("https://pay.example/"), person("Open it in the browser").asking, at);
  expect(opened).toEqual(["https://pay.example/"]);
});

test.each([
  ["https://bank.example@evil.example/", "before the @"],
  ["http://pay.example/", "not encrypted"],
  ["https://аpple.example/", "not ASCII"],
])("what is odd about %s is said", async (url, words) => {
  const { asking, seen } = person("No");
  await askPerson(page(url), asking, quiet);
  expect(seen[0]).toContain(words);
});

test.each(["javascript:alert(1)", "file:///etc/passwd", "vscode://open?x", "not an address"])(
  "%s is refused without asking",
  async (url) => {
    const { asking, seen } = person("Open it in the browser");
    expect(await askPerson(page(url), asking, quiet)).toEqual({ action: "decline" });
    expect(seen).toEqual([]);
  },
);
