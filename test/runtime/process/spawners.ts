/** The two ways to start a command, for tests that must hold for both. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { has } from "../../needs.ts";
import type { Confined } from "../../../src/runtime/process/child.ts";
import { launcherPath } from "../../../src/runtime/process/launcher-path.ts";

/** Built where a compiler is and set-up has not done it; without one, only the plain way can be tested. */
function findLauncher(): string | undefined {
  const found = launcherPath();
  if (found !== undefined || process.env["CALLGATE_LAUNCHER"] === "off") return found;
  spawnSync(process.execPath, [fileURLToPath(new URL("../../../scripts/build-launcher.mjs", import.meta.url))]);
  return launcherPath();
}

const path = findLauncher();

export const launchers: readonly { readonly name: string; readonly launcher: string }[] = [
  { name: "plain spawn", launcher: "off" },
  ...(path === undefined ? [] : [{ name: "the launcher", launcher: path }]),
];

/** Those by which a confined command can be started: without the launcher there is no Landlock. */
export const confining = launchers.map(({ name, launcher }) =>
  launcher === "off"
    ? { name: `${name} (needs bubblewrap)`, launcher, isThere: has("bubblewrap") }
    : { name, launcher, isThere: true },
);

/** A command that nothing confines. */
export function unconfined(launch: Pick<Confined, "argv" | "cwd" | "env"> & Partial<Confined>): Confined {
  const grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" } as const;
  return { grant, sandbox: "none", cleanup: async () => undefined, ...launch };
}
