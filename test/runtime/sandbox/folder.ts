import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A fresh folder, gone after the test. */
export function freshFolder(parent = tmpdir()): string {
  const folder = realpathSync(mkdtempSync(join(parent, "callgate-test-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
