import { relative } from "node:path";
import { CallError } from "../base/error.ts";
import { isObject } from "../base/json.ts";
import { createFiles } from "../runtime/files.ts";
import { unifiedDiff } from "../session/diff-text.ts";
import type { Checked } from "../spec/call.ts";
import { applyPatch } from "../tools/patch/patch.ts";

/** What a patch would do, as a diff to agree to: planned on the real files, nothing written. Other calls have none. */
export function createPreview(
  cwd: string,
  mask: readonly string[],
): (checked: Pick<Checked, "tool" | "input">) => Promise<string | undefined> {
  // Planned as if everything might be changed, since that is what is being asked; a dry run writes nothing.
  const grant = { policy: "workspace-write", confined: true, write: ["/"], protect: [], mask, network: "off" } as const;
  return async ({ tool, input }) => {
    if (tool.name !== "apply_patch") return undefined;
    const patch = isObject(input) ? input["input"] : input;
    if (typeof patch !== "string") return undefined;
    try {
      const files = createFiles({ workspace: cwd, cwd, grant });
      const { changes } = await applyPatch(patch, { files, cwd }, { dryRun: true });
      return changes.map(({ path, before, after }) => diffOf(shorten(path, cwd), before, after)).join("");
    } catch (error) {
      if (CallError.is(error)) return undefined; // it does not apply: the person sees the patch itself, the model the reason
      throw error;
    }
  };
}

function shorten(path: string, cwd: string): string {
  const inside = relative(cwd, path);
  return inside.startsWith("..") || !path.startsWith("/") ? path : inside;
}

function diffOf(path: string, before: string | undefined, after: string | undefined): string {
  const bytes = (text: string | undefined) => (text === undefined ? undefined : Buffer.from(text));
  return unifiedDiff({ path, before: bytes(before), after: bytes(after) });
}
