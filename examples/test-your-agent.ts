// A test of an agent: a scripted model makes a mistake, and we see what it is told and what is refused.
import assert from "node:assert/strict";
import { createEngine, defineTool } from "callgate";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";

const paid: number[] = [];
const pay = defineTool({
  name: "pay",
  description: "Pay an invoice.",
  input: { type: "object", properties: { eur: { type: "number", maximum: 100 } }, required: ["eur"] } as const,
  mutates: true,
  run: ({ eur }) => {
    paid.push(eur);
    return `paid ${eur} euros`;
  },
});

const model = createScriptedModel([
  { calls: [{ name: "pay", input: { eur: 5_000 } }] }, // too much: the schema says so
  { calls: [{ name: "pay", input: { eur: 50 } }] }, // fine, but a person has to agree
  { text: "I could not pay." },
]);
const approver = { ask: async () => ({ answer: "no", message: "Not today." }) as const };
const engine = createEngine({ tools: [pay], approver });
const session = createSession({ id: "test", engine, model });
const codes: (string | undefined)[] = [];
for await (const event of session.send("Pay the invoice."))
  if (event.type === "call.ended") codes.push(event.call.code);

assert.deepEqual(codes, ["invalid_input", "rejected"]);
assert.deepEqual(paid, []);
// The model was told why: its third request carries the person's words.
assert.match(JSON.stringify(model.requests[2]), /Not today\./);
await session.close();
await engine.close();
console.log("as expected");
