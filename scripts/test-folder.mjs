// The tests make thousands of small folders. They lie in one temp folder of the run, which is removed at its end.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function setup() {
  const before = process.env["TMPDIR"];
  // A short name, because the path of a socket may have 107 characters.
  const folder = mkdtempSync(join(tmpdir(), "cg-"));
  chmodSync(folder, 0o1777); // as the system's own: some tests go on as another user
  process.env["TMPDIR"] = folder;
  return () => {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
}
