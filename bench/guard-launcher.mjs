// Runs some commands through the launcher that is named, for the guard to count what it does. Started by guard.ts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, launcher, count] = process.argv.slice(2);
const entry = (name) => import(pathToFileURL(join(dist, name)).href);
const { createEngine } = await entry("index.js");
const { shellCommand } = await entry("tools.js");
const workspace = mkdtempSync(join(tmpdir(), "callgate-guard-"));
const engine = createEngine({
  tools: [shellCommand],
  workspace,
  approval: "never",
  sandbox: "full-access",
  launcher,
});
for (let index = 0; index < Number(count); index++) {
  const { ok, text } = await engine.call("shell_command", { command: `true ${index}` });
  if (!ok) throw new Error(`the command did not run: ${text}`);
}
await engine.close();
rmSync(workspace, { recursive: true });
