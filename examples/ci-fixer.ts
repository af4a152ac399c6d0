/** A CI fixer: it may change this checkout and run its tests, asks nobody, and stops when its budget is spent. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "callgate";
import { createSession } from "callgate/session";
import { createOfflineModel } from "callgate/testing";
import { builtins } from "callgate/tools";

// A checkout whose test fails, so that the example stands alone.
const workspace = mkdtempSync(join(tmpdir(), "ci-fixer-"));
writeFileSync(join(workspace, "add.mjs"), "export const add = (a, b) => a - b;\n");
writeFileSync(
  join(workspace, "check.mjs"),
  'import { add } from "./add.mjs";\nif (add(2, 40) !== 42) throw new Error("2 + 40 is 42");\n',
);
const isGreen = () => {
  try {
    execFileSync(process.execPath, ["check.mjs"], { cwd: workspace, stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
console.log("before:", isGreen());

// No person is there: what would need one is refused. The network is off; only the checkout can be written.
const engine = createEngine({
  workspace,
  tools: builtins,
  approval: "never",
  sandbox: "workspace-write",
  gate: { rules: [{ command: "git push", decision: "deny", reason: "CI opens a pull request itself" }] },
});
const session = createSession({
  id: "ci",
  engine,
  model: createOfflineModel(), // or `await createProviderModel({ provider: "anthropic", model: "…" })`
  limits: { maxRequests: 20, maxCalls: 30, maxTokens: 200_000, maxMs: 300_000 },
});
const task = "run node check.mjs, then replace 'a - b' with 'a + b' in add.mjs, then run node check.mjs";
for await (const event of session.send(task)) {
  if (event.type === "call.ended") console.log(event.call.ok ? "✓" : "✗", event.call.tool);
  if (event.type === "turn.ended") console.log(event.reason, `after ${event.calls} calls`);
}
console.log("after:", isGreen());
await session.close();
await engine.close();
process.exitCode = isGreen() ? 0 : 1;
