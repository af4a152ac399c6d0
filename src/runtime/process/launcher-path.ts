import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * Where the launcher program is: CALLGATE_LAUNCHER (`off` for none), the platform package, or the
 * build in this checkout. Undefined where there is none: everything works without it, slower.
 */
export function launcherPath(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env["CALLGATE_LAUNCHER"];
  if (named === "off") return undefined;
  if (named) return named;
  if (process.platform !== "linux") return undefined;
  return candidates().find(isExecutable);
}

function candidates(): readonly string[] {
  const local = `native/build/callgate-launcher`;
  const packaged = `native/${process.platform}-${process.arch}/callgate-launcher`;
  // From src/runtime/process/, and from dist/ once bundled.
  return ["../../../", "../", "../../"].flatMap((up) =>
    [packaged, local].map((name) => fileURLToPath(new URL(up + name, import.meta.url))),
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // not there, or not for us
  }
}
