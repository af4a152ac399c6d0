import { spawnSync } from "node:child_process";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { launcherPath } from "../../../src/runtime/process/launcher-path.ts";
import { unconfined } from "./spawners.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";

test("CALLGATE_LAUNCHER names the launcher, or says that there is none", () => {
  expect(launcherPath({ CALLGATE_LAUNCHER: "off" })).toBeUndefined();
  expect(launcherPath({ CALLGATE_LAUNCHER: "/opt/launcher" })).toBe("/opt/launcher");
  expect(createProcesses({ env: { CALLGATE_LAUNCHER: "off" } }).spawner.name).toBe("plain");
});

test("a launcher that cannot run ends the call with an error that says what to do", async () => {
  const { spawner, close } = createProcesses({ launcher: "/etc/hostname" });
  const launch = unconfined({ argv: ["true"], cwd: "/", env: {} });
  const child = await spawner.start(launch, { liveBytes: 1, tailBytes: 1, graceMs: 1, onOutput() {}, onDropped() {} });
  await expect(child.ended).rejects.toMatchObject({ step: "launcher" });
  await close();
});

test("the platform package holds the program and nothing that runs at install", { timeout: 120_000 }, () => {
  const out = mkdtempSync(join(tmpdir(), "callgate-package-"));
  const script = fileURLToPath(new URL("../../../scripts/package.mjs", import.meta.url));
  expect(spawnSync(process.execPath, [script, out]).status).toBe(0);
  const folder = join(out, `callgate-launcher-linux-${process.arch}`);
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, unknown>;
  expect(manifest).toMatchObject({
    os: ["linux"],
    cpu: [process.arch],
    files: ["callgate-launcher", "callgate-launcher.sha256"],
  });
  expect(manifest["scripts"]).toBeUndefined();
  accessSync(join(folder, "callgate-launcher"), constants.X_OK);
  expect(
    Number(spawnSync(join(folder, "callgate-launcher"), ["landlock-abi"], { encoding: "utf8" }).stdout),
  ).toBeGreaterThanOrEqual(0);
  rmSync(out, { recursive: true });
});
