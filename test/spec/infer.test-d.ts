/** Compiled, not run: what a handler receives for each kind of schema, and what must not compile. */
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { expectTypeOf } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { createRegistry } from "../../src/registry/registry.ts";
import { defineTool } from "../../src/registry/define.ts";
import { freeform } from "../../src/spec/freeform.ts";
import type { AnyTool } from "../../src/spec/tool.ts";

const base = { name: "t", description: "d" } as const;
interface Input {
  path: string;
  limit?: number | undefined;
}

const fromZod = defineTool({
  ...base,
  input: z.object({ path: z.string(), limit: z.number().optional() }),
  run: (input) => (expectTypeOf(input).toEqualTypeOf<Input>(), ""),
});
const fromArk = defineTool({
  ...base,
  input: type({ path: "string", "limit?": "number" }),
  run: (input) => (expectTypeOf(input).toEqualTypeOf<{ path: string; limit?: number }>(), ""),
});
const fromValibot = defineTool({
  ...base,
  input: toStandardJsonSchema(v.object({ path: v.string(), limit: v.optional(v.number()) })),
  run: (input) => (expectTypeOf(input).toEqualTypeOf<Input>(), ""),
});
const fromPair = defineTool({
  ...base,
  input: { validate: mini.object({ path: mini.string() }), json: { type: "object" } },
  run: (input) => (expectTypeOf(input).toEqualTypeOf<{ path: string }>(), ""),
});
const fromFreeform = defineTool({
  ...base,
  input: freeform({ syntax: "regex", definition: ".*" }),
  run: (input) => (expectTypeOf(input).toEqualTypeOf<string>(), ""),
});

const fromJson = defineTool({
  ...base,
  input: {
    type: "object",
    properties: {
      path: { type: "string" },
      mode: { enum: ["fast", "slow"] },
      tags: { type: "array", items: { type: "string" } },
      size: { type: ["integer", "null"] },
      nested: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] },
    },
    required: ["path", "mode"],
  },
  access: ({ path }) => ({ read: [path] }),
  mutates: ({ mode }) => mode === "slow",
  examples: [{ input: { path: "a", mode: "fast" } }],
  run(input, ctx) {
    expectTypeOf(input).toEqualTypeOf<{
      path: string;
      mode: "fast" | "slow";
      tags?: string[];
      size?: number | null;
      nested?: { on: boolean };
    }>();
    expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>();
    return { ok: true };
  },
});

// Every one of them is a tool like any other.
createRegistry([fromZod, fromArk, fromValibot, fromPair, fromFreeform, fromJson]);
expectTypeOf(fromJson).toExtend<AnyTool>();

// @ts-expect-error a tool needs a handler
defineTool({ ...base, input: { type: "object" } });
// @ts-expect-error a library without its JSON half is not an input
defineTool({ ...base, input: mini.object({ path: mini.string() }), run: () => "" });
defineTool({
  ...base,
  input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  // @ts-expect-error a number is no text
  run: ({ n }) => n.toUpperCase(),
});

class Box {
  readonly size: number;
  constructor(options: { readonly size: number }) {
    this.size = options.size;
  }
}
createRegistry().register(Box, { with: { size: 1 } });
// @ts-expect-error the constructor wants a number
createRegistry().register(Box, { with: { size: "1" } });
