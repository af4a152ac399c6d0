import { resolve } from "node:path";
import { CallError } from "../../index.ts";
import { toChanges, toOutcome, type PatchContext, type PatchOutcome } from "./patch.ts";
import { commit } from "./commit.ts";
import { createPlan } from "./plan.ts";

/** Files given with their whole content, through the same plan as a patch: all of them or none. */
export async function writeWhole(
  files: readonly { readonly path: string; readonly content: string }[],
  ctx: PatchContext,
): Promise<PatchOutcome> {
  const seen = new Set<string>();
  const plan = createPlan(ctx.files, ctx.cwd, false);
  const outcome: PatchOutcome["files"][number][] = [];
  for (const { path, content } of files) {
    const absolute = resolve(ctx.cwd, path);
    if (seen.has(absolute)) throw new CallError("invalid_input", `${path} is given twice.`);
    seen.add(absolute);
    const exists = (await ctx.files.stat(absolute)) !== undefined;
    await plan.put(path, content);
    outcome.push({ path, action: exists ? "update" : "add" });
  }
  await commit(plan.steps(), ctx.files);
  return toOutcome(outcome, [], toChanges(plan.steps()));
}
