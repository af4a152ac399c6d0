/** The folder a session works in: made from its base when the session is first opened, gone when the session is. */
import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { isAbsolute, join, relative } from "node:path";
import { promisify } from "node:util";
import { isObject, type Json } from "../../base/json.ts";
import { isPrivateAddress } from "../../runtime/proxy/hosts.ts";
import type { SessionStore } from "../../serve/index.ts";
import { undoFile } from "../../workspace/undo.ts";
import { downloadArchive, unpackArchive } from "./archive.ts";

export type Base =
  | { readonly kind: "empty" }
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "git"; readonly url: string; readonly ref?: string }
  | { readonly kind: "archive"; readonly url: string };

const run = promisify(execFile);
const maxMs = 10 * 60_000;

export function readBase(given: Json | undefined): Base | undefined {
  return isObject(given) ? (given as unknown as Base) : undefined; // matched the route's schema when it came in
}

/** Options of `prepareWorkspace`. */
export interface WorkspaceOptions {
  readonly session: string;
  readonly cwd: string;
  readonly base: Base | undefined;
  /** The folder of all folders that the service makes. */
  readonly workspaces: string;
  /** Whether a base may come from this host though it is at a private address. */
  readonly mayBePrivate: (host: string) => boolean;
}

/** Whose folder it is, in a file beside it: a folder whose session was removed is removed as well. */
const ownerOf = (cwd: string) => `${cwd}.session`;

/** Made whole or not at all: a folder that is there is used as it is. */
export async function prepareWorkspace({
  session,
  cwd,
  base,
  workspaces,
  mayBePrivate,
}: WorkspaceOptions): Promise<void> {
  if (existsSync(cwd)) return;
  const inside = relative(workspaces, cwd);
  if (inside.startsWith("..") || isAbsolute(inside)) throw new Error(`the folder ${cwd} is gone`);
  const temporary = `${cwd}.new`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true, mode: 0o700 });
  writeFileSync(ownerOf(cwd), session, { mode: 0o600 });
  try {
    if (base?.kind === "git") await clone(await findHost(base.url, mayBePrivate), base.ref, temporary);
    if (base?.kind === "archive") await unpack(await findHost(base.url, mayBePrivate), temporary);
  } catch (error) {
    // The owner last, as where folders are swept.
    for (const path of [temporary, ownerOf(cwd)]) rmSync(path, { recursive: true, force: true });
    throw error;
  }
  renameSync(temporary, cwd);
}

/** The archive itself lies beside what it unpacks to for as long as that takes. */
async function unpack({ url, address }: Found, folder: string): Promise<void> {
  const file = join(folder, ".archive");
  await downloadArchive(url, address, file);
  await unpackArchive(file, folder);
  rmSync(file);
}

interface Found {
  readonly url: URL;
  /** Where its host is. It is asked there and nowhere else, whatever its name leads to a moment later. */
  readonly address: string;
}

/** Only over HTTPS, and for others than the operator never to a machine of the network that the service stands in. */
async function findHost(given: string, mayBePrivate: (host: string) => boolean): Promise<Found> {
  if (!/^https:\/\//i.test(given)) throw new Error("a base is an https address");
  const url = new URL(given);
  if (url.username !== "" || url.password !== "") throw new Error("the address of a base holds no password");
  const host = url.hostname.replaceAll(/^\[|\]$/g, "");
  const addresses = isIP(host) === 0 ? (await lookup(host, { all: true })).map(({ address }) => address) : [host];
  const address = mayBePrivate(host) ? addresses[0] : addresses.find((one) => !isPrivateAddress(one));
  if (address === undefined)
    throw new Error(`${host} is at a private address: whoever runs the service can allow it with --base-host`);
  return { url, address };
}

/** Nothing of the repository runs, nobody is asked for a password, and no redirection leads elsewhere. */
async function clone({ url, address }: Found, ref: string | undefined, folder: string): Promise<void> {
  if (ref !== undefined && ref.startsWith("-")) throw new Error("a git ref does not begin with '-'");
  const settings = [
    "protocol.allow=never",
    "protocol.https.allow=always",
    "core.hooksPath=/dev/null",
    "http.followRedirects=false",
    ...(isIP(url.hostname.replaceAll(/^\[|\]$/g, "")) === 0
      ? [`http.curloptResolve=${url.hostname}:${url.port || "443"}:${address}`]
      : []),
  ].flatMap((setting) => ["-c", setting]);
  const env = { ...process.env, GIT_TERMINAL_PROMPT: "0", GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]) =>
    run("git", [...settings, ...args], { env, timeout: maxMs, maxBuffer: 16 * 1024 * 1024 }).catch((error: unknown) => {
      // The command line is ours and says nothing; git's own last words do.
      const words = isObject(error) && typeof error["stderr"] === "string" ? error["stderr"].trim() : "";
      throw new Error(`git: ${words.split("\n").at(-1) || "the repository could not be had"}`);
    });
  await git("clone", "--quiet", "--no-checkout", "--", url.href, folder);
  await git("-C", folder, "checkout", "--quiet", "--detach", ref ?? "HEAD", "--");
}

const sweepMs = 10 * 60_000;

/** Folders of sessions that are no more are removed: when that is told, at the start, and now and then. */
export function keepSwept(workspaces: string, store: SessionStore, onError: (error: unknown) => void): () => void {
  let sweeping = Promise.resolve();
  const sweep = () => (sweeping = sweeping.then(() => sweepFolders(workspaces, store)).catch(onError));
  const stop = store.watch((change) => {
    if (change.type === "removed") void sweep();
  });
  const timer = setInterval(() => void sweep(), sweepMs).unref();
  void sweep();
  return () => {
    stop();
    clearInterval(timer);
  };
}

async function sweepFolders(workspaces: string, store: SessionStore): Promise<void> {
  if (!existsSync(workspaces)) return;
  for (const name of readdirSync(workspaces).filter((one) => one.endsWith(".session"))) {
    const cwd = join(workspaces, name.slice(0, -".session".length));
    if ((await store.get(readFileSync(ownerOf(cwd), "utf8"))) !== undefined) continue;
    // Its owner last: what was cut off here is found again.
    for (const path of [cwd, `${cwd}.new`, `${cwd}.states`, undoFile(cwd), ownerOf(cwd)])
      rmSync(path, { recursive: true, force: true });
  }
}
