/** The tools of an engine for any wire: names that it takes and that lead back, freeform tools in the form it has. */
import { expect, test } from "vitest";
import {
  type CallErrorCode,
  createEngine,
  defineTool,
  type Exec,
  type Files,
  freeform,
  toToolSpecs,
} from "../../src/index.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { spellNames } from "../../src/spec/name.ts";
import type { ToolSpec } from "../../src/model/index.ts";
import type { WireName } from "../../src/wire/index.ts";

const input = { type: "object", properties: { city: { type: "string" } } } as const;
const names = ["weather", "maps/find place!", `maps/${"long".repeat(40)}`, "maps/find place?"];
const tools = [
  ...names.map((name) => defineTool({ name, description: name, input, run: () => `ran ${name}` })),
  defineTool({ name: "note", description: "Notes.", input: freeform(), run: (text) => `noted ${text}` }),
];
const engine = createEngine({ tools, workspace: "." });
const wires: readonly WireName[] = ["chat", "responses", "messages", "gemini"];

/** The names in a request's `tools`, wherever the wire has them. */
function namesIn(list: readonly JsonObject[]): readonly string[] {
  return list.flatMap((tool) => {
    const inner = tool["functionDeclarations"] as readonly JsonObject[] | undefined;
    return inner ? namesIn(inner) : [String((tool["function"] as JsonObject | undefined)?.["name"] ?? tool["name"])];
  });
}

test.each(wires)("on %s every name is legal and a call under it runs the very tool", async (wire) => {
  const made = await engine.toolsFor(wire, { custom: false });
  const spelled = namesIn(made.tools);
  expect(spelled).toHaveLength(5);
  expect(made.dropped).toEqual([]);
  for (const name of spelled) expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
  const real = spelled.map((name) => made.names.get(name)?.name);
  expect(real.toSorted()).toEqual([...names, "note"].toSorted());
  for (const [index, name] of spelled.entries()) {
    const freely = real[index] === "note";
    const ended = await engine.call(name, freely ? { input: "hello" } : { city: "Rome" });
    expect(ended.text).toBe(freely ? "noted hello" : `ran ${real[index]}`);
  }
});

test("freeform tools are custom where the wire has them, and functions elsewhere or when that is wanted", async () => {
  const kindOf = async (wire: WireName, custom?: boolean) => {
    const { tools: list } = await engine.toolsFor(wire, {
      only: ["note"],
      ...(custom === undefined ? {} : { custom }),
    });
    return JSON.stringify(list);
  };
  expect(await kindOf("responses")).toContain('"type":"custom"');
  expect(await kindOf("responses", false)).toContain('"type":"function"');
  expect(await kindOf("chat")).toContain('"required":["input"]');
  expect(await kindOf("messages")).toContain('"required":["input"]');
});

test("a wire or a tool that is not there is a TypeError with the nearest name", async () => {
  await expect(engine.toolsFor("respones" as WireName)).rejects.toThrow("did you mean 'responses'?");
  await expect(engine.toolsFor("chat", { only: ["wether"] })).rejects.toThrow("did you mean 'weather'?");
});

test("toToolSpecs tells of an engine's tools in the neutral form, sorted", () => {
  const specs: readonly ToolSpec[] = toToolSpecs(engine, { custom: false, native: false });
  expect(specs.map(({ kind, name }) => `${kind} ${name}`)).toEqual(
    [...names, "note"].toSorted().map((name) => `function ${name}`),
  );
});

test("openapiSchemas has names that providers take", () => {
  const spellings = spellNames([...names, "note"]);
  expect(
    engine.registry
      .openapiSchemas()
      .map((schema) => schema.function.name)
      .toSorted(),
  ).toEqual([...spellings.values()].toSorted());
});

test("the types of what a handler is given have names", () => {
  const isReader = (files: Files, exec: Exec, code: CallErrorCode) => [files, exec, code].length;
  expect(isReader).toHaveLength(3);
});
