/**
 * The two halves of landlock-qemu.sh that need our own code: `request ABI FILE [ARCH]` writes what the launcher
 * in the guest is to run, confined for a kernel of that ABI; `check ABI FILE` judges the guest's output.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { encodeLaunch } from "../src/runtime/process/launcher-protocol.ts";
import { landlockRules } from "../src/runtime/sandbox/landlock-rules.ts";
import type { Plan } from "../src/runtime/sandbox/plan.ts";
import { seccompProgram } from "../src/runtime/sandbox/seccomp/filter.ts";
import type { Grant } from "../src/spec/access.ts";
import { escapes, leaks, losses, olderLandlockLeaks, parseOutcomes } from "../test/attacks/expected.ts";

const [mode, abiText = "", file = "", architecture = "x64"] = process.argv.slice(2);
const abi = Number(abiText);

// The guest's disk, as the shell script lays it out.
const grant: Grant = {
  policy: "workspace-write",
  confined: true,
  write: ["/ws"],
  protect: [".git"],
  mask: ["/home"],
  network: "off",
};
const plan: Plan = {
  everything: false,
  roots: ["/ws"],
  watched: [],
  entries: [
    { path: "/home", use: "hide", kind: "directory" },
    { path: "/ws/.git", use: "read", kind: "directory" },
  ],
};
const nothing = { liveBytes: 0, tailBytes: 0, graceMs: 0, onOutput() {}, onDropped() {} };

if (mode === "request") writeFileSync(file, request());
else process.exitCode = check(readFileSync(file, "utf8")) ? 0 : 1;

function request(): Uint8Array {
  // Asked for as if Landlock were there even where it is not: the launcher must then refuse to run anything.
  const rules = landlockRules({ abi: Math.max(abi, 1), plan, grant, cwd: "/ws", tempFolder: "/private" });
  const seccomp = seccompProgram({
    architecture: architecture === "arm64" ? "arm64" : "x64",
    sockets: "unix",
    refuseTruncate: abi < 3,
    hostView: true,
  });
  const argv = [
    "/bin/probe",
    "/ws",
    "/outside",
    "/home/secret",
    "1",
    "9",
    "/outside/none.sock",
    "/outside/agent.sock",
    "none",
    "9",
  ];
  // The rules follow the links of the disk they were made on, which is not the guest's.
  const programs = { path: "/bin", access: 1 | 4 | 8 };
  const landlock = { ...rules, rules: [...rules.rules, programs], seccomp };
  return encodeLaunch({ argv, cwd: "/ws", env: { PATH: "/bin", HOME: "/outside" }, landlock }, nothing);
}

function check(output: string): boolean {
  const said = /abi (-?\d+)\r?$/m.exec(output)?.[1];
  const code = /^exit (\d+)/m.exec(output)?.[1];
  const outcomes = parseOutcomes(/^probes\r?\n([^]*?)^exit /m.exec(output)?.[1] ?? "");
  if (abi === 0) {
    const isRefused = said === "0" && code !== "0" && !outcomes.has("write_workspace");
    console.log(
      isRefused ? "ok: no Landlock, nothing was run" : `WRONG: abi ${said}, exit ${code}, ${outcomes.size} probes ran`,
    );
    return isRefused;
  }
  const known = [...(leaks["landlock"] ?? []), ...(abi < 6 ? olderLandlockLeaks : [])];
  const [out, lost] = [escapes(outcomes, known), losses(outcomes, "landlock")];
  const isRight = said === abiText && outcomes.size > 100 && out.length === 0 && lost.length === 0;
  console.log(
    isRight
      ? `ok: ABI ${said}, ${outcomes.size} probes, no escape`
      : `WRONG: ABI ${said}, ${outcomes.size} probes, escaped: ${out.join(", ")}; lost: ${lost.join(", ")}`,
  );
  return isRight;
}
