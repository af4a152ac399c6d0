import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandbox, runConfined } from "callgate/sandbox";
import type { Grant } from "callgate";

const workspace = mkdtempSync(join(tmpdir(), "confined-"));
const grant: Grant = {
  policy: "workspace-write",
  confined: true,
  write: [workspace],
  protect: [".git"],
  mask: [],
  network: "off",
};

const sandbox = createSandbox();
const command = await sandbox.confine({
  argv: ["sh", "-c", "echo hello > note && echo no > /etc/note"],
  cwd: workspace,
  env: { PATH: "/usr/bin:/bin" },
  grant,
});
const ending = await runConfined(command);
const denied = await command.cleanup(ending);
console.log(command.sandbox, ending.exitCode, denied?.target);
await sandbox.close();
