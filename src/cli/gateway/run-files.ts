/** Files that one run of an agent reads instead of its user's, so that nothing of the user's is changed. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { stateDir } from "../../base/paths.ts";
import type { ClientSetup } from "./clients.ts";

export interface RunFiles {
  readonly env: Readonly<Record<string, string>>;
  remove(): void;
}

export function filesFor({ file, instead }: ClientSetup, env: NodeJS.ProcessEnv): RunFiles {
  if (file === undefined || instead === undefined) return { env: {}, remove: () => undefined };
  // Not in /tmp: gemini-cli reads no settings below a folder in which others may write.
  const place = join(stateDir(env), "gateway");
  mkdirSync(place, { recursive: true, mode: 0o700 });
  const folder = mkdtempSync(join(place, "run-"));
  const name = basename(file.path);
  writeFileSync(join(folder, name), `${file.text}\n`, { mode: 0o600 });
  // The rest of the agent's folder, its sessions and settings, stays where it is.
  const usual = join(env["HOME"] ?? homedir(), dirname(file.path).replace(/^~\//, ""));
  if (instead.isFolder && existsSync(usual))
    for (const other of readdirSync(usual)) if (other !== name) symlinkSync(join(usual, other), join(folder, other));
  return {
    env: { [instead.variable]: instead.isFolder ? folder : join(folder, name) },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
