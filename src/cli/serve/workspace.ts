/** The folder a session works in, made from its base when the session is first opened. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, isAbsolute } from "node:path";
import { promisify } from "node:util";
import { isObject, type Json } from "../../base/json.ts";

export type Base =
  | { readonly kind: "empty" }
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "git"; readonly url: string; readonly ref?: string }
  | { readonly kind: "archive"; readonly url: string };

const run = promisify(execFile);
const maxMs = 10 * 60_000;
const maxArchiveBytes = 1024 * 1024 * 1024;

export function readBase(given: Json | undefined): Base | undefined {
  return isObject(given) ? (given as unknown as Base) : undefined; // matched the route's schema when it came in
}

/** Made whole or not at all: a folder that is there is used as it is. */
export async function prepareWorkspace(cwd: string, base: Base | undefined, workspaces: string): Promise<void> {
  if (existsSync(cwd)) return;
  const inside = relative(workspaces, cwd);
  if (inside.startsWith("..") || isAbsolute(inside)) throw new Error(`the folder ${cwd} is gone`);
  const temporary = `${cwd}.new`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true, mode: 0o700 });
  if (base?.kind === "git") await clone(base.url, base.ref, temporary);
  if (base?.kind === "archive") await unpack(base.url, temporary);
  renameSync(temporary, cwd);
}

/** Only over HTTPS, nothing of the repository runs, and nobody is asked for a password. */
async function clone(url: string, ref: string | undefined, folder: string): Promise<void> {
  if (!/^https:\/\//i.test(url)) throw new Error("a git base is an https address");
  if (ref !== undefined && ref.startsWith("-")) throw new Error("a git ref does not begin with '-'");
  const safe = ["-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "core.hooksPath=/dev/null"];
  const env = { ...process.env, GIT_TERMINAL_PROMPT: "0", GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]) =>
    run("git", [...safe, ...args], { env, timeout: maxMs, maxBuffer: 16 * 1024 * 1024 });
  await git("clone", "--quiet", "--no-checkout", "--", url, folder);
  await git("-C", folder, "checkout", "--quiet", "--detach", ref ?? "HEAD", "--");
}

async function unpack(url: string, folder: string): Promise<void> {
  if (!/^https:\/\//i.test(url)) throw new Error("an archive is an https address");
  const response = await fetch(url, { signal: AbortSignal.timeout(maxMs), redirect: "error" });
  if (!response.ok) throw new Error(`the archive could not be had: HTTP ${response.status}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  if (bytes.length > maxArchiveBytes) throw new Error("the archive is larger than 1 GB");
  const file = join(folder, ".archive");
  writeFileSync(file, bytes);
  await run("tar", ["-xf", file, "--no-same-owner", "--no-same-permissions", "-C", folder], { timeout: maxMs });
  rmSync(file);
}
