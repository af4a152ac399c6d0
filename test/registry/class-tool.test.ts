import { expect, test } from "vitest";
import { createRegistry } from "../../src/registry/registry.ts";
import { openapi, xml } from "../../src/registry/decorators.ts";
import type { ToolContext } from "../../src/spec/tool.ts";

class FilesTool {
  calls = 0;
  readonly root: string;

  constructor(options: { readonly root: string }) {
    this.root = options.root;
  }

  @openapi({
    description: "Replaces text in a file",
    parameters: {
      command: { type: "string", enum: ["str_replace"] },
      path: "the file",
      old_str: "what to replace",
      new_str: "with what",
    },
  })
  @xml({
    tag: "str-replace",
    attributes: ["command", "path"],
    elements: ["old_str", "new_str"],
    example: '<str-replace path="a"/>',
  })
  str_replace_editor(input: { path: string }) {
    this.calls++;
    return `${this.root}/${input.path} (${this.calls})`;
  }

  @openapi({
    description: "Asks the user",
    parameters: { text: "the question", attachments: "files" },
    required: ["text"],
  })
  @xml({
    tag: "ask",
    parameters: [
      { name: "text", node: "content", path: "." },
      { name: "attachments", node: "attribute", path: ".", required: false },
    ],
  })
  ask(input: { text: string }) {
    this.calls++;
    return `${input.text} (${this.calls})`;
  }

  @xml({ content: "thought" })
  think(input: { thought: string }) {
    return input.thought;
  }

  helper() {
    return this.root;
  }
}

class Empty {
  plain() {
    return "";
  }
}

const ctx = {} as ToolContext;

test("decorated methods become tools; the others do not", () => {
  const registry = createRegistry().register(FilesTool, { with: { root: "/w" } });
  expect(registry.list().map(({ name }) => name)).toEqual(["ask", "str_replace_editor", "think"]);
});

test("one instance serves both look-ups", async () => {
  const registry = createRegistry().register(FilesTool, { with: { root: "/w" } });
  const byName = registry.find("str_replace_editor")!;
  const byTag = registry.findByTag("str-replace")!;
  expect(byTag).toBe(byName);
  expect(await byName.run({ path: "a" } as never, ctx)).toBe("/w/a (1)");
  expect(await registry.findByTag("ask")!.run({ text: "q" } as never, ctx)).toBe("q (2)");
});

test("only the named methods are registered, and an unknown one is refused", () => {
  expect(
    createRegistry()
      .register(FilesTool, { only: ["ask"], with: { root: "" } })
      .list(),
  ).toHaveLength(1);
  expect(() => createRegistry().register(FilesTool, { only: ["aks"], with: { root: "" } })).toThrow(
    "FilesTool has no decorated method 'aks'",
  );
  expect(() => createRegistry().register(Empty)).toThrow("Empty has no method with @openapi or @xml");
});

test("the schemas and examples of both forms can be listed", () => {
  const registry = createRegistry().register(FilesTool, { with: { root: "" } });
  expect(registry.xmlExamples()).toEqual(['<str-replace path="a"/>']);
  expect(registry.openapiSchemas()[0]).toEqual({
    type: "function",
    function: {
      name: "ask",
      description: "Asks the user",
      parameters: {
        type: "object",
        properties: {
          text: { type: "string", description: "the question" },
          attachments: { type: "string", description: "files" },
        },
        required: ["text"],
        additionalProperties: false,
      },
    },
  });
  expect(registry.find("str_replace_editor")!.xml?.parameters).toEqual([
    { name: "command", node: "attribute", path: "." },
    { name: "path", node: "attribute", path: "." },
    { name: "old_str", node: "element", path: "old_str" },
    { name: "new_str", node: "element", path: "new_str" },
  ]);
  expect(registry.find("think")!.xml).toMatchObject({ tag: "think" });
});

test("parameters that the tag names may be described beside the description; another word there is refused", () => {
  class Editor {
    @openapi({ description: "Edits.", path: "the file" })
    @xml({ tag: "edit", attributes: ["path"], content: "text" })
    edit({ path }: { path: string }) {
      return path;
    }
  }
  expect(createRegistry().register(Editor).openapiSchemas()[0]?.function.parameters).toEqual({
    type: "object",
    properties: { path: { type: "string", description: "the file" }, text: { type: "string" } },
    required: ["path", "text"],
    additionalProperties: false,
  });

  class Mistaken {
    @openapi({ description: "Edits.", pth: "the file" })
    @xml({ tag: "edit", attributes: ["path"] })
    edit({ path }: { path: string }) {
      return path;
    }
  }
  expect(() => createRegistry().register(Mistaken)).toThrow("there is no field 'pth'");
});
