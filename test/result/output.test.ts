import { expect, test } from "vitest";
import { readOutput } from "../../src/result/output.ts";

const textOf = (output: Parameters<typeof readOutput>[0]) => readOutput(output).parts;

test("text, JSON, parts and nothing are each read as what they are", () => {
  expect(textOf("hello")).toEqual([{ type: "text", text: "hello" }]);
  expect(readOutput({ sent: true })).toEqual({
    parts: [{ type: "text", text: '{"sent":true}' }],
    structured: { sent: true },
    ok: true,
  });
  expect(textOf({ type: "image", mediaType: "image/png", data: "AA==" })).toEqual([
    { type: "image", mediaType: "image/png", data: "AA==" },
  ]);
  expect(textOf(undefined)).toEqual([]);
  expect(textOf([])).toEqual([{ type: "text", text: "[]" }]);
});

test("MCP content is taken as it is", () => {
  const output = readOutput({
    content: [
      { type: "text", text: "a" },
      { type: "image", mimeType: "image/png", data: "AA==" },
      { type: "resource", resource: { uri: "file:///x", text: "body", mimeType: "text/plain" } },
      { type: "resource_link", uri: "file:///y", name: "y" },
    ],
    isError: true,
    structuredContent: { n: 1 },
  });
  expect(output).toMatchObject({ ok: false, structured: { n: 1 } });
  expect(output.parts).toEqual([
    { type: "text", text: "a" },
    { type: "image", mediaType: "image/png", data: "AA==" },
    { type: "resource", uri: "file:///x", text: "body", mediaType: "text/plain" },
    { type: "resource", uri: "file:///y", name: "y" },
  ]);
});

test("an object that merely has a field named content is JSON", () => {
  expect(readOutput({ content: "a letter", to: "somebody" })).toMatchObject({
    structured: { content: "a letter", to: "somebody" },
  });
});

test("a result with text and structure keeps both", () => {
  expect(readOutput({ content: "two files", structured: { files: 2 } })).toEqual({
    parts: [{ type: "text", text: "two files" }],
    structured: { files: 2 },
    ok: true,
  });
});
