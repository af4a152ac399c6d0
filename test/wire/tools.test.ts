import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import type { FunctionSpec, ToolSpec } from "../../src/spec/model.ts";
import { schemaTargets } from "../../src/schema/normalize.ts";
import { lowerTools } from "../../src/wire/tools.ts";
import { recordedSchemas } from "../schema/corpus.ts";

const tool = (name: string, parameters: JsonObject = { type: "object", properties: {} }): FunctionSpec => ({
  kind: "function",
  name,
  description: name,
  parameters,
});

describe("tools for wires that have functions only", () => {
  test("the list is sorted by name, the same whatever order it came in", () => {
    const names = ["read_file", "apply_patch", "zoom", "docs/search"];
    const one = lowerTools(
      names.map((name) => tool(name)),
      { target: "openai" },
    );
    const other = lowerTools(
      names.toReversed().map((name) => tool(name)),
      { target: "openai" },
    );
    expect(JSON.stringify(one.tools)).toBe(JSON.stringify(other.tools));
    expect(one.tools.map(({ name }) => name)).toEqual(["apply_patch", "mcp__docs__search", "read_file", "zoom"]);
  });

  test("a freeform tool becomes a function with one string, its grammar in the description", () => {
    const spec: ToolSpec = {
      kind: "custom",
      name: "apply_patch",
      description: "patch files",
      format: { type: "grammar", syntax: "lark", definition: "start: /x/" },
    };
    const { tools, book } = lowerTools([spec], { target: "openai" });
    expect(tools[0]!.parameters).toMatchObject({ required: ["input"], properties: { input: { type: "string" } } });
    expect(tools[0]!.description).toContain("start: /x/");
    expect(book.table.get("apply_patch")).toEqual({ name: "apply_patch", kind: "custom" });
  });

  test("a native tool goes as its function form, and is left out and named where it has none", () => {
    const shell: ToolSpec = {
      kind: "native",
      type: "local_shell",
      name: "local_shell",
      asFunction: tool("local_shell"),
    };
    const search: ToolSpec = { kind: "native", type: "web_search", name: "web_search" };
    const { tools, book, dropped } = lowerTools([shell, search], { target: "openai" });
    expect(tools.map(({ name }) => name)).toEqual(["local_shell"]);
    expect(book.table.get("local_shell")?.kind).toBe("local_shell");
    expect(dropped).toEqual([{ name: "web_search", reason: "web_search has no function form" }]);
  });

  test("one bad tool never takes another with it", () => {
    const unreadable: JsonObject = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("broken schema");
        },
      },
    );
    const bad = tool("bad", unreadable);
    const { tools, dropped } = lowerTools([tool("good"), bad, tool("good")], { target: "anthropic" });
    expect(tools.map(({ name }) => name)).toEqual(["good"]);
    expect(dropped.map(({ name }) => name).toSorted()).toEqual(["bad", "good"]);
  });

  test("more tools than a wire takes are left out and named", () => {
    const many = Array.from({ length: 130 }, (_, at) => tool(`t${at}`));
    const { tools, dropped } = lowerTools(many, { target: "openai", maxTools: 128 });
    expect([tools.length, dropped.length]).toEqual([128, 2]);
  });

  test("every recorded schema is lowered for every target, none dropped", () => {
    const specs = recordedSchemas.map((row, at): ToolSpec => ({
      kind: "namespace",
      name: `mcp__s${at}`,
      description: "",
      tools: [tool(row.tool, row.inputSchema)],
    }));
    for (const target of schemaTargets) {
      const { tools, dropped } = lowerTools(specs, { target });
      expect(dropped).toEqual([]);
      expect(tools).toHaveLength(specs.length);
      expect(
        tools.every(
          ({ name, parameters }) => /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/.test(name) && parameters["type"] === "object",
        ),
      ).toBe(true);
    }
  });
});
