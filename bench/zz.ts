import { mkdtempSync, realpathSync } from "node:fs";
import { createExec } from "../src/runtime/exec.ts";
import { createProcesses } from "../src/runtime/processes.ts";
import { createSandbox } from "../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../src/spec/access.ts";
const mode = process.argv[2], n = Number(process.argv[3]), gap = Number(process.argv[4] ?? 5);
const cwd = realpathSync(mkdtempSync("/var/tmp/cgz-"));
const open: Grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" };
const confined: Grant = { ...open, policy: "workspace-write", confined: true, write: [cwd], network: "off", mask: ["/root/.npmrc","/root/.bash_history","/etc/shadow","/etc/gshadow","/etc/ssl/private"] };
const processes = createProcesses(), sandbox = createSandbox(mode === "landlock" ? { only: "landlock" } : {});
const exec = createExec({ processes, grant: mode === "open" ? open : confined, sandbox, cwd, env: { PATH: "/usr/bin:/bin" }, signal: new AbortController().signal });
const times: number[] = [];
for (let i = 0; i < n; i++) { const t = performance.now(); await exec.run({ argv: ["bash", "-c", "true"] }); times.push(performance.now() - t); await new Promise(r => setTimeout(r, gap)); }
times.sort((a, b) => a - b);
await processes.close(); await sandbox.close();
console.log(mode, "p10", times[Math.floor(n / 10)]!.toFixed(2), "p50", times[Math.floor(n / 2)]!.toFixed(2));
