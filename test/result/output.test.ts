import fc from "fast-check";
import { expect, test } from "vitest";
import { CallError } from "../../src/base/error.ts";
import { readOutput } from "../../src/result/shape.ts";
import { result } from "../../src/spec/result.ts";

const textOf = (output: Parameters<typeof readOutput>[0]) => readOutput(output).content;

test("text, JSON, parts and nothing are each read as what they are", () => {
  expect(textOf("hello")).toEqual([{ type: "text", text: "hello" }]);
  expect(readOutput({ sent: true })).toEqual({
    content: [{ type: "text", text: '{"sent":true}' }],
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
  expect(output.content).toEqual([
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

test("a marked result with text and structure keeps both", () => {
  expect(readOutput(result({ content: "two files", structured: { files: 2 } }))).toEqual({
    content: [{ type: "text", text: "two files" }],
    structured: { files: 2 },
    ok: true,
  });
  expect(readOutput(result({ error: "no such file" }))).toEqual({
    content: [{ type: "text", text: "no such file" }],
    ok: false,
  });
  expect(readOutput(result({ ok: false, structured: { n: 1 } }))).toMatchObject({
    ok: false,
    content: [{ text: '{"n":1}' }],
  });
});

test("without the mark an object is plain JSON, whatever its keys are called", () => {
  for (const plain of [
    { content: "two files", structured: { files: 2 } },
    { content: [] },
    { content: [], exec: { status: "ok" } },
    { ok: false },
    { content: [{ type: "text" }] },
    { content: [{ type: "text", text: "x" }], title: "a document" },
    { type: "text", text: "x", author: "Ada" },
    { error: "none", rows: [1] },
    { error: { code: 1 } },
    { error: "", output: "fine" },
    { error: "it warned", output: "and went on" },
  ])
    expect(readOutput(plain)).toEqual({
      content: [{ type: "text", text: JSON.stringify(plain) }],
      structured: plain,
      ok: true,
    });
});

test("{ error } is a failure, with or without an empty output beside it", () => {
  expect(readOutput({ error: "not found" })).toEqual({
    content: [{ type: "text", text: "not found" }],
    structured: { error: "not found" },
    ok: false,
  });
  expect(readOutput({ output: null, error: "not found" })).toMatchObject({ ok: false });
});

test("an error that is returned and not thrown is a failure, and what JSON would empty is one too", () => {
  // A program in JavaScript may return anything, whatever the types say.
  const give = (value: unknown) => () => readOutput(value as Parameters<typeof readOutput>[0]);
  expect(give(new RangeError("too far"))).toThrow("too far");
  const own = new CallError("denied", "not this one");
  expect(give(own)).toThrow(own);
  expect(give(new Map([["a", 1]]))).toThrow(/gave back a Map/);
  expect(give(new Set([1]))).toThrow(/gave back a Set/);
});

test("a list of parts is content in MCP's spelling too", () => {
  const image = { type: "image", mimeType: "image/png", data: "AA==" };
  expect(readOutput([{ type: "text", text: "a" }, image])).toEqual({
    content: [
      { type: "text", text: "a" },
      { type: "image", mediaType: "image/png", data: "AA==" },
    ],
    ok: true,
  });
  expect(readOutput([image, { type: "image" }])).toMatchObject({ structured: [image, { type: "image" }] });
});

test("a command's outcome must be whole, and a field that a result does not have is a mistake", () => {
  const exec = { status: "ok" } as never;
  expect(() => readOutput(result({ exec }))).toThrow("without all of its fields");
  // @ts-expect-error a misspelt field
  expect(() => result({ contents: "x" })).toThrow("did you mean 'content'?");
});

test("whatever a handler hands back ends in a form or in a CallError, and what is structured is JSON", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const throwing = Object.defineProperty({}, "type", {
    enumerable: true,
    get() {
      throw new Error("no");
    },
  });
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const odd = [
    cycle,
    throwing,
    proxy,
    () => 1,
    Symbol("x"),
    1n,
    { a: 1n },
    result({ content: "x", structured: 1n as never }),
  ];
  // Handlers are typed, and JavaScript is not.
  for (const value of odd) {
    const caught = (() => {
      try {
        return readOutput(value as never);
      } catch (error) {
        return error;
      }
    })();
    expect(CallError.is(caught), String(typeof value)).toBe(true);
  }
  expect(readOutput({ at: new Date(0) } as never).structured).toEqual({ at: "1970-01-01T00:00:00.000Z" });
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }), (value) => {
      try {
        const { structured, content } = readOutput(value as never);
        JSON.stringify([structured, content]);
      } catch (error) {
        expect(CallError.is(error)).toBe(true);
      }
    }),
  );
});
