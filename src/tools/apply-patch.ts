/** `apply_patch` in its three forms: text under a grammar, a function's input, whole files. */
import { resolve } from "node:path";
import { defineTool, freeform, type ToolResult } from "../index.ts";
import { patchGrammar } from "./patch/grammar.ts";
import { parsePatch } from "./patch/parse.ts";
import { applyPatch as runPatch, patchedPaths, type PatchOutcome } from "./patch/patch.ts";
import { writeWhole } from "./patch/whole.ts";

const description = [
  "Change files by a patch; all of it is applied, or nothing. Form:",
  "*** Begin Patch",
  "*** Update File: src/a.ts",
  "@@ function run() {",
  " kept line",
  "-removed line",
  "+added line",
  "*** End Patch",
  "Other headers: '*** Add File: PATH' (every line begins with +), '*** Delete File: PATH', and '*** Move to: PATH' right after an Update header.",
  "Give about three kept lines before and after a change; '@@ LINE' names a line above it where those are not unique.",
].join("\n");

/** The door for models that write patches as text. */
export const applyPatch = defineTool({
  name: "apply_patch",
  description,
  input: freeform({ syntax: "lark", definition: patchGrammar, label: "patch", unchecked: true }),
  access: (input, { cwd }) => ({ write: patchedPaths(parsePatch(input)).map((path) => resolve(cwd, path)) }),
  mutates: true,
  aliases: ["applypatch"],
  group: "file",
  run: (input, ctx) => answer(runPatch(input, ctx)),
});

/** The same as a function: `{ input }`. */
export const applyPatchFunction = defineTool({
  name: "apply_patch",
  description,
  input: {
    type: "object",
    properties: {
      input: { type: "string", description: "The whole patch, from '*** Begin Patch' to '*** End Patch'" },
    },
    required: ["input"],
    additionalProperties: false,
  },
  access: ({ input }, { cwd }) => ({ write: patchedPaths(parsePatch(input)).map((path) => resolve(cwd, path)) }),
  mutates: true,
  aliases: ["applypatch"],
  group: "file",
  run: ({ input }, ctx) => answer(runPatch(input, ctx)),
});

/** Seed 000's form: whole files, given as JSON. */
export const applyPatchFiles = defineTool({
  name: "apply_patch",
  description: "Apply code changes to files: each file gets the content given; all files or none.",
  input: {
    type: "object",
    properties: {
      files: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          properties: {
            path: { type: "string" },
            content: { type: "string", description: "The file's whole new content" },
          },
          required: ["path", "content"],
          additionalProperties: false,
        },
      },
    },
    required: ["files"],
    additionalProperties: false,
  },
  access: ({ files }, { cwd }) => ({ write: files.map(({ path }) => resolve(cwd, path)) }),
  mutates: true,
  group: "file",
  run: ({ files }, ctx) => answer(writeWhole(files, ctx)),
});

/** The words and names only: what the files held before stays here. */
async function answer(outcome: Promise<PatchOutcome>): Promise<ToolResult> {
  const { content, structured } = await outcome;
  return { content, ...(structured === undefined ? {} : { structured }) };
}
