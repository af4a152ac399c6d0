/** Forms that models of a family really write, beside the ones in the shared sample. */
import { expect, test } from "vitest";
import { reading } from "./reading.ts";

const tools = ["f", "g"].map((name) => ({
  name,
  parameters: { type: "object", properties: { a: { type: "integer" }, s: { type: "string" } } },
}));
const f1 = ["f", { a: 1 }];
const g0 = ["g", {}];

test.each([
  ["functionary-v3.2", 'all\nHello>>>f\n{"a": 1}', [f1]],
  ["functionary-v3.2", 'f\n{"a": 1}\n>>>g\n{}', [f1, g0]],
  ["harmony", '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a":1}<|call|>', [f1]],
  ["internlm2", '<|action_start|> <|plugin|>\n{"name": "f", "parameters": {"a": 1}}\n<|action_end|><|im_end|>', [f1]],
  [
    "minimax-m1",
    '<tool_calls>\n{"name": "f", "arguments": {"a": 1}}\n{"name": "g", "arguments": {}}\n</tool_calls>',
    [f1, g0],
  ],
  ["dots", '<dots_function_call><invoke name="f">{"a": 1}</invoke></dots_function_call>', [f1]],
  ["dots", "<dots_function_call><invoke name=f><parameter name=a>1</parameter></invoke></dots_function_call>", [f1]],
  [
    "longcat",
    "<longcat_tool_call>f\n<longcat_arg_key>a</longcat_arg_key>\n<longcat_arg_value>1</longcat_arg_value>\n</longcat_tool_call>",
    [f1],
  ],
  ["xlam", '```json\n[{"name": "f", "arguments": {"a": 1}}]\n```', [f1]],
  ["xlam", '<think>hm</think>[{"name": "f", "arguments": {"a": 1}}]', [f1]],
  [
    "hunyuan-v3",
    "<tool_calls:k7><tool_call:k7>f<tool_sep:k7><arg_key:k7>a</arg_key:k7><arg_value:k7>1</arg_value:k7></tool_call:k7></tool_calls:k7>",
    [f1],
  ],
  ["mistral-v11", '[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g{}', [f1, g0]],
  ["llama3-builtin", "<|python_tag|>f.call(a=1)", [f1]],
  ["llama3-json", '{"type": "function", "name": "f", "parameters": {"a": 1}}<|eom_id|>', [f1]],
  ["react", 'Thought: I need it\nAction: f\nAction Input: {"a": 1}\nObservation: 7', [f1]],
  ["continue-codeblock", "```tool\nTOOL_NAME: f\nBEGIN_ARG: a\n1\nEND_ARG\n```", [f1]],
  [
    "granite-20b-fc",
    '<function_call> {"name": "f", "arguments": {"a": 1}}\n<function_call> {"name": "g", "arguments": {}}',
    [f1, g0],
  ],
  ["deepseek-v3", '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"a": 1}\n```<｜tool▁call▁end｜>', [f1]],
  ["kimi-k2", '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a":1}<|tool_call_end|>', [f1]],
  ["gemma4", "<|tool_call>f{a:1}<tool_call|><|tool_call>call:g{}<tool_call|>", [f1, g0]],
  ["pythonic", "<|python_start|>[f(a=1), g()]<|python_end|>", [f1, g0]],
  ["olmo3", "<function_calls>\nf(a=1)\n\ng()\n</function_calls>", [f1, g0]],
  ["minicpm5", '<function name="f"><param name="s"><![CDATA[a < b]]></param></function>', [["f", { s: "a < b" }]]],
  [
    "step3",
    '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f"><steptml:parameter name="a">1</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
    [f1],
  ],
  ["cline-xml", "<thinking>hm</thinking>\n<f>\n<a>1</a>\n</f>", [f1]],
  ["auto", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value></tool_call>", [f1]],
  ["auto", "<function_calls>f(a=1)</function_calls>", [f1]],
  ["auto", '<function_calls><invoke name="f"><parameter name="a">1</parameter></invoke></function_calls>', [f1]],
  ["auto", '<tool_calls>[{"name":"f","arguments":{"a":1}}]</tool_calls>', [f1]],
  ["auto", '[TOOL_CALLS]f[ARGS]{"a":1}', [f1]],
])("%s reads %j", (dialect, text, calls) => {
  expect(reading(text, { dialect, tools }).whole).toEqual(calls);
  expect(reading(Array.from(text), { dialect, tools }).whole).toEqual(calls);
});
