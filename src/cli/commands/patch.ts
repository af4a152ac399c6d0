import { resolve } from "node:path";
import { buildCommand } from "@stricli/core";
import { CallError } from "../../base/error.ts";
import { createFiles } from "../../runtime/files.ts";
import { realOrSame } from "../../runtime/files/paths.ts";
import { applyPatch, type PatchOptions } from "../../tools/patch/patch.ts";
import { runBatch } from "../batch.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, readInput, runCommand, say, UsageError } from "../io.ts";
import { visible } from "../chat/visible.ts";

interface Flags {
  readonly dryRun?: boolean;
  readonly batch?: boolean;
  readonly codex?: boolean;
  readonly json?: boolean;
  readonly cwd?: string;
}

/** What one patch came to, as the batch form prints it. */
interface Answer {
  readonly ok: boolean;
  readonly error?: string;
  readonly code?: string;
  readonly files: readonly { readonly path: string; readonly action: string }[];
  /** The text for people, which is what the tool itself would have told a model. */
  readonly text: string;
}

export const command = buildCommand<Flags, [string?]>({
  docs: {
    brief: "apply a patch to this folder: all files or none",
    fullDescription:
      "Reads a patch ('*** Begin Patch' … '*** End Patch') from FILE or stdin. With --batch: JSON lines {id, dir, patch} in, {id, ok, error?, files} out.",
  },
  parameters: {
    flags: {
      dryRun: toggle("check everything, write nothing"),
      batch: toggle("JSON lines in, JSON lines out"),
      codex: toggle("as codex does: first place that fits, what was done before a failure stays"),
      json: toggle("print the outcome as JSON"),
      cwd: { kind: "parsed", parse: String, optional: true, brief: "the folder, if not this one", placeholder: "DIR" },
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "FILE", brief: "the patch; - or nothing is stdin", optional: true }],
    },
  },
  func: (flags: Flags, file?: string) =>
    runCommand(async () => {
      if (flags.batch) {
        await runBatch((line) => answerLine(line, flags));
        return;
      }
      const patch = await readInput(file);
      if (patch.trim() === "") throw new UsageError("there is no patch: give a file, or a patch on stdin");
      return report(await apply(patch, resolve(flags.cwd ?? "."), flags), flags);
    }),
});

async function answerLine(line: Record<string, unknown>, flags: Flags): Promise<object> {
  const { dir, patch } = line;
  if (typeof dir !== "string" || typeof patch !== "string")
    return { ok: false, error: "a line needs 'dir' and 'patch', both strings", files: [] };
  const codex = flags.codex || line["codex"] === true;
  const { text: _text, ...answer } = await apply(patch, resolve(dir), { ...flags, codex });
  return answer;
}

/** A person applies this patch to this folder, so the folder may be changed and nothing else. */
async function apply(patch: string, dir: string, options: Pick<PatchOptions, "codex" | "dryRun">): Promise<Answer> {
  const grant = {
    policy: "workspace-write",
    confined: true,
    write: [realOrSame(dir)],
    protect: [".git"],
    mask: [],
    network: "off",
  } as const;
  const files = createFiles({ workspace: dir, cwd: dir, grant });
  try {
    const outcome = await applyPatch(patch, { files, cwd: dir }, options);
    return { ok: true, files: outcome.files.map(({ path, action }) => ({ path, action })), text: outcome.content };
  } catch (error) {
    if (!CallError.is(error)) throw error;
    const text = error.hint === undefined ? error.message : `${error.message}\n${error.hint}`;
    return { ok: false, error: text, code: error.code, files: [], text };
  }
}

function report({ text, ...answer }: Answer, flags: Flags): number {
  if (flags.json) printJson(answer);
  else if (answer.ok)
    print(visible(flags.dryRun ? text.replace("Success. Updated", "It would apply. It would update") : text));
  else say(visible(`callgate: ${text}`));
  if (answer.ok) return exitCodes.done;
  return answer.code === "denied" || answer.code === "sandbox_denied" ? exitCodes.refused : exitCodes.failed;
}
