// Tools of the conformance fixture that ask on their own while they run: `ctx.ask`, nothing else.
import { tool } from "./mcp-conformance-parts.mjs";

const form = (message, properties, required = Object.keys(properties)) => ({
  kind: "form",
  message,
  fields: { type: "object", properties, required },
});
const text = { type: "string" };
const said = ({ action, content }) => `action=${action}, content=${JSON.stringify(content)}`;

const names = { const: "value1", title: "First Option" };
const titled = [names, { const: "value2", title: "Second Option" }, { const: "value3", title: "Third Option" }];
const options = ["option1", "option2", "option3"];
const askName = form("What is your name?", { name: text });
const confirm = form("Please confirm", { ok: { type: "boolean" } });

const greet = async (_input, { ask }) => {
  const { user_name: answer } = await ask({ user_name: askName });
  return `Hello, ${answer.content.name ?? "you"}!`;
};
const agree = async (_input, { ask }) => {
  const { confirm: answer } = await ask({ confirm });
  return answer.content.ok === true ? "state-ok" : "not agreed";
};

export const askingTools = [
  tool(
    "test_elicitation",
    async ({ message }, { ask }) => {
      const { user } = await ask({ user: form(message, { username: text, email: text }) });
      return `User response: ${said(user)}`;
    },
    { type: "object", properties: { message: text }, required: ["message"] },
  ),
  tool(
    "test_sampling",
    async ({ prompt }, { ask }) => {
      const { answer } = await ask({ answer: { kind: "model", prompt, maxTokens: 100 } });
      return `LLM response: ${answer.text}`;
    },
    { type: "object", properties: { prompt: text }, required: ["prompt"] },
  ),
  tool("test_elicitation_sep1034_defaults", async (_input, { ask }) => {
    const fields = {
      name: { ...text, default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { ...text, enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    };
    const { user } = await ask({ user: form("Please review the fields", fields, []) });
    return `Elicitation completed: ${said(user)}`;
  }),
  tool("test_elicitation_sep1330_enums", async (_input, { ask }) => {
    const fields = {
      untitledSingle: { ...text, enum: options },
      titledSingle: { ...text, oneOf: titled },
      legacyEnum: { ...text, enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
      untitledMulti: { type: "array", items: { ...text, enum: options } },
      titledMulti: { type: "array", items: { anyOf: titled } },
    };
    const { choice } = await ask({ choice: form("Please choose", fields, []) });
    return `Elicitation completed: ${said(choice)}`;
  }),
  tool("test_streaming_elicitation", greet),
  tool("test_missing_capability", async (_input, { ask }) => {
    const { answer } = await ask({ answer: { kind: "model", prompt: "Are you there?", maxTokens: 10 } });
    return answer.text;
  }),
  tool("test_input_required_result_elicitation", greet),
  tool("test_input_required_result_sampling", async (_input, { ask }) => {
    const prompt = "What is the capital of France?";
    const { capital_question: answer } = await ask({ capital_question: { kind: "model", prompt, maxTokens: 100 } });
    return answer.text;
  }),
  tool("test_input_required_result_list_roots", async (_input, { ask }) => {
    const { client_roots: answer } = await ask({ client_roots: { kind: "folders" } });
    return answer.folders.map(({ uri }) => uri).join("\n");
  }),
  tool("test_input_required_result_request_state", agree),
  tool("test_input_required_result_tampered_state", agree),
  tool("test_input_required_result_multiple_inputs", async (_input, { ask }) => {
    const { user_name, greeting, client_roots } = await ask({
      user_name: askName,
      greeting: { kind: "model", prompt: "Generate a greeting", maxTokens: 50 },
      client_roots: { kind: "folders" },
    });
    return `${greeting.text} ${user_name.content.name} works in ${client_roots.folders.length} folders`;
  }),
  tool("test_input_required_result_multi_round", async (_input, { ask }) => {
    const { step1 } = await ask({ step1: form("Step 1: What is your name?", { name: text }) });
    const { step2 } = await ask({ step2: form("Step 2: What is your favorite color?", { color: text }) });
    return `${step1.content.name} likes ${step2.content.color}`;
  }),
  tool("test_input_required_result_capabilities", async (_input, { ask }) => {
    const { answer } = ask.can("form")
      ? await ask({ answer: askName })
      : await ask({ answer: { kind: "model", prompt: "What is your name?", maxTokens: 20 } });
    return JSON.stringify(answer);
  }),
];
