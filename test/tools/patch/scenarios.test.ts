import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { checkLark } from "../../../src/check/lark.ts";
import { patchGrammar } from "../../../src/tools/patch/grammar.ts";
import { applyPatch } from "../../../src/tools/patch/patch.ts";
import { filesIn } from "../workspace.ts";

const folder = fileURLToPath(new URL("../../../../shared/data/patches", import.meta.url));
const scenarios = readdirSync(folder).filter((name) => /^\d/.test(name));
/** Codex keeps what was done before a failure; we do only when asked to. */
const partial = new Set(["015_failure_after_partial_success_leaves_changes"]);

describe("the recorded patch scenarios", () => {
  test.each(scenarios)("%s leaves the expected files", async (name) => {
    const dir = prepare(name);
    const patch = readFileSync(join(folder, name, "patch.txt"), "utf8");
    await applyPatch(patch, { files: filesIn(dir), cwd: dir }, { codex: partial.has(name) }).catch(() => undefined);
    expect(tree(dir)).toEqual(tree(join(folder, name, "expected")));
  });

  test.each(scenarios)("%s follows the grammar that models are given, unless it must not", (name) => {
    const verdict = checkLark(patchGrammar, readFileSync(join(folder, name, "patch.txt"), "utf8"));
    expect(verdict.ok).toBe(!/rejects_(?:empty_patch|invalid)|whitespace_padded/.test(name));
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
