/** Where the launcher program is, if there is one. */
import { accessSync, constants, existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/**
 * CALLGATE_LAUNCHER (`off` for none), the platform package, or the one that was built from source.
 * Undefined if there is none; everything works without it, but slower.
 */
export function launcherPath(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env["CALLGATE_LAUNCHER"];
  if (named === "off") return undefined;
  if (named) return named;
  if (process.platform !== "linux") return undefined;
  return packaged() ?? builtHere().find(isExecutable);
}

/** The script that builds it, wherever this package is installed. */
export function launcherBuild(): string {
  const script = "scripts/build-launcher.mjs";
  return fromPackage(script).find((path) => existsSync(path)) ?? script;
}

function builtHere(): readonly string[] {
  return fromPackage("native/build/callgate-launcher");
}

/** As seen from src/runtime/process/, and from dist/ after bundling. */
function fromPackage(path: string): readonly string[] {
  return ["../../../", "../", "../../"].map((up) => fileURLToPath(new URL(`${up}${path}`, import.meta.url)));
}

/** Built by scripts/package.mjs, and installed beside this package as an optional dependency. */
function packaged(): string | undefined {
  try {
    const name = `callgate-launcher-${process.platform}-${process.arch}/callgate-launcher`;
    return createRequire(import.meta.url).resolve(name);
  } catch {
    return undefined; // none for this system, or not installed
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // not there, or not readable for us
  }
}
