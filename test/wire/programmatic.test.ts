/** Scripts that a provider runs itself and that call our tools: what says so goes through both ways. */
import { expect, test } from "vitest";
import { codecs } from "../../src/wire/index.ts";

const schema = { type: "object", properties: { city: { type: "string" } } };

test("Messages: the code tool, who may call a tool, the caller of a call and the container are kept", () => {
  const caller = { type: "code_execution_20260120", tool_id: "srvtoolu_1" };
  const program = { type: "server_tool_use", id: "srvtoolu_1", name: "code_execution", input: { code: "…" } };
  const body = {
    model: "claude",
    max_tokens: 100,
    container: "container_1",
    tools: [
      { type: "code_execution_20260120", name: "code_execution" },
      { name: "weather", description: "", input_schema: schema, allowed_callers: ["code_execution_20260120"] },
    ],
    messages: [
      { role: "user", content: "compare" },
      {
        role: "assistant",
        content: [program, { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Oslo" }, caller }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "rain" }] },
    ],
  };
  const request = codecs.messages.decodeRequest(body);
  expect(request.input.find((item) => item.type === "call")).toMatchObject({ name: "weather", caller });
  const sent = codecs.messages.encodeRequest(request).body;
  expect(sent).toMatchObject({ container: "container_1", tools: body.tools });
  expect(JSON.stringify(sent["messages"])).toContain(JSON.stringify(caller));
  expect(JSON.stringify(sent["messages"])).toContain('"type":"server_tool_use"');
});

test("Responses: the tool for programs, who may call a function and the caller of a call are kept", () => {
  const caller = { type: "program", caller_id: "prog_1" };
  const body = {
    model: "gpt",
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "compare" }] },
      { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}', caller },
      { type: "function_call_output", call_id: "call_1", output: "rain" },
    ],
    tools: [
      { type: "programmatic_tool_calling" },
      {
        type: "function",
        name: "weather",
        description: "",
        parameters: schema,
        strict: false,
        allowed_callers: ["direct", "programmatic"],
      },
    ],
  };
  const request = codecs.responses.decodeRequest(body);
  expect(request.input.find((item) => item.type === "call")).toMatchObject({ name: "weather", caller });
  const { tools, input } = codecs.responses.encodeRequest(request).body;
  expect(tools).toEqual(expect.arrayContaining(body.tools.map((tool) => expect.objectContaining(tool))));
  expect(JSON.stringify(input)).toContain(JSON.stringify(caller));
});
