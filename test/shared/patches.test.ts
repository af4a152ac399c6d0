/** The maintainers' recorded patch scenarios, where they are there; ours are in test/tools/patch. */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { applyPatch } from "../../src/tools/patch/patch.ts";
import { sharedFolder } from "../needs.ts";
import { filesIn } from "../tools/workspace.ts";

const folder = join(sharedFolder ?? "", "patches");
const scenarios = sharedFolder === undefined ? ["none"] : readdirSync(folder).filter((name) => /^\d/.test(name));
/** Codex keeps what was done before a failure; we do only when asked to. */
const partial = new Set(["015_failure_after_partial_success_leaves_changes"]);

describe.skipIf(sharedFolder === undefined)("the recorded patch scenarios (needs the shared cases)", () => {
  test.each(scenarios)("%s leaves the expected files", async (name) => {
    const dir = prepare(name);
    const patch = readFileSync(join(folder, name, "patch.txt"), "utf8");
    await applyPatch(patch, { files: filesIn(dir), cwd: dir }, { codex: partial.has(name) }).catch(() => undefined);
    expect(tree(dir)).toEqual(tree(join(folder, name, "expected")));
  });

  test.each(scenarios)("%s ends the same way in the codex mode", async (name) => {
    const dir = prepare(name);
    const patch = readFileSync(join(folder, name, "patch.txt"), "utf8");
    await applyPatch(patch, { files: filesIn(dir), cwd: dir }, { codex: true }).catch(() => undefined);
    expect(tree(dir)).toEqual(tree(join(folder, name, "expected")));
  });
});

function prepare(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), "callgate-patch-"));
  if (existsSync(join(folder, name, "input"))) cpSync(join(folder, name, "input"), dir, { recursive: true });
  return dir;
}

/** Every file below a folder, by relative path. */
function tree(dir: string): Record<string, string> {
  const names = existsSync(dir) ? readdirSync(dir, { recursive: true, encoding: "utf8" }) : [];
  return Object.fromEntries(
    names
      .filter((name) => statSync(join(dir, name)).isFile())
      .map((name) => [name, readFileSync(join(dir, name), "latin1")]),
  );
}
