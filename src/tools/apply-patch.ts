/** `apply_patch` in its three forms: text under a grammar, a function's input, whole files. */
import { resolve } from "node:path";
import { CallError, defineTool, freeform, result, type ToolResult } from "../index.ts";
import { patchGrammar } from "./patch/grammar.ts";
import { parsePatch } from "./patch/parse.ts";
import { applyPatch as runPatch, patchedPaths, type PatchOutcome } from "./patch/patch.ts";
import { writeWhole } from "./patch/whole.ts";

const description = [
  "Change files by a patch; all of it is applied, or nothing.",
  "Form:",
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

const textInput = {
  type: "object",
  properties: {
    input: { type: "string", description: "The whole patch, from '*** Begin Patch' to '*** End Patch'" },
  },
  required: ["input"],
  additionalProperties: false,
} as const;

const filesDescription = "Apply code changes to files: each file gets the content given; all files or none.";

const filesInput = {
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
} as const;

/** `apply_patch`, for models that write patches as plain text. */
export const applyPatch = defineTool({
  name: "apply_patch",
  description,
  input: freeform({ syntax: "lark", definition: patchGrammar, label: "patch" }),
  forms: { function: { input: textInput }, files: { description: filesDescription, input: filesInput } },
  access(input, { cwd }) {
    const paths = readWhole(input)?.map(({ path }) => path) ?? patchedPaths(parsePatch(toPatch(input)));
    return { write: paths.map((path) => resolve(cwd, path)) };
  },
  mutates: true,
  rehearsable: true,
  aliases: ["applypatch"],
  group: "file",
  run(input, ctx) {
    const files = readWhole(input);
    return answer(files === undefined ? runPatch(toPatch(input), ctx) : writeWhole(files, ctx));
  },
});

/** Whole files sent where a patch was expected. A patch never begins with a brace. */
function readWhole(input: string): readonly WholeFile[] | undefined {
  if (!input.trimStart().startsWith("{")) return undefined;
  try {
    const { files } = JSON.parse(input) as { readonly files?: unknown };
    return Array.isArray(files) && files.length > 0 && files.every(isWholeFile) ? files : undefined;
  } catch {
    return undefined; // not JSON, so the patch parser says what is wrong
  }
}

/**
 * Turns an operation in the form of OpenAI's own `apply_patch` tool into the equivalent patch. Any
 * other text is returned as it is.
 */
function toPatch(input: string): string {
  const operation = readOperation(input);
  if (operation === undefined) return input;
  const { type, path, diff } = operation;
  if (/[\r\n]/.test(path)) throw new CallError("invalid_input", "a path with a line break in it");
  const lines = diff.replace(/\r?\n$/, "").split(/\r?\n/);
  // Every line of a new file has a plus sign, but some models leave them out.
  const added = lines.every((line) => line.startsWith("+")) ? lines : lines.map((line) => `+${line}`);
  const body: Readonly<Record<Operation["type"], readonly string[]>> = {
    create_file: [`*** Add File: ${path}`, ...(diff === "" ? [] : added)],
    update_file: [`*** Update File: ${path}`, ...lines],
    delete_file: [`*** Delete File: ${path}`],
  };
  return ["*** Begin Patch", ...body[type], "*** End Patch", ""].join("\n");
}

interface Operation {
  readonly type: "create_file" | "update_file" | "delete_file";
  readonly path: string;
  readonly diff: string;
}

function readOperation(input: string): Operation | undefined {
  if (!input.trimStart().startsWith("{")) return undefined;
  try {
    const { type, path, diff = "" } = JSON.parse(input) as Readonly<Record<string, unknown>>;
    const isKnown = type === "create_file" || type === "update_file" || type === "delete_file";
    return isKnown && typeof path === "string" && typeof diff === "string" ? { type, path, diff } : undefined;
  } catch {
    return undefined; // not JSON, so the patch parser says what is wrong
  }
}

interface WholeFile {
  readonly path: string;
  readonly content: string;
}

function isWholeFile(file: unknown): file is WholeFile {
  if (typeof file !== "object" || file === null || !("path" in file) || !("content" in file)) return false;
  return typeof file.path === "string" && typeof file.content === "string";
}

/** `apply_patch` as a function, for models that write no plain text calls: `{ input }`. */
export const applyPatchFunction = defineTool({
  name: "apply_patch",
  description,
  input: textInput,
  access: ({ input }, { cwd }) => ({ write: patchedPaths(parsePatch(input)).map((path) => resolve(cwd, path)) }),
  mutates: true,
  rehearsable: true,
  aliases: ["applypatch"],
  group: "file",
  run: ({ input }, ctx) => answer(runPatch(input, ctx)),
});

/** `apply_patch` with whole files, given as JSON. */
export const applyPatchFiles = defineTool({
  name: "apply_patch",
  description: filesDescription,
  input: filesInput,
  access: ({ files }, { cwd }) => ({ write: files.map(({ path }) => resolve(cwd, path)) }),
  mutates: true,
  rehearsable: true,
  group: "file",
  run: ({ files }, ctx) => answer(writeWhole(files, ctx)),
});

/** Returns only the text and the names. The earlier content of the files stays here. */
async function answer(outcome: Promise<PatchOutcome>): Promise<ToolResult> {
  const { content, structured } = await outcome;
  return result({ content, ...(structured === undefined ? {} : { structured }) });
}
