/** The two ways to start a command, for tests that must hold for both. */
import { launcherPath } from "../../../src/runtime/process/launcher-path.ts";

const path = launcherPath();

export const launchers: readonly { readonly name: string; readonly launcher: string }[] = [
  { name: "plain spawn", launcher: "off" },
  ...(path === undefined ? [] : [{ name: "the launcher", launcher: path }]),
];
