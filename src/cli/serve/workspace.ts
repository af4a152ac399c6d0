/** The folder a session works in: made from its base when the session is first opened, and removed with the session. */
import { lookup } from "node:dns/promises";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { isAbsolute, join, relative } from "node:path";
import { isObject, type Json } from "../../base/json.ts";
import { isPrivateAddress } from "../../runtime/proxy/hosts.ts";
import type { SessionStore } from "../../serve/index.ts";
import { undoFile } from "../../workspace/undo.ts";
import { downloadArchive, unpackArchive } from "./archive.ts";
import { cloneRepository } from "./repository.ts";

export type Base =
  | { readonly kind: "empty" }
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "git"; readonly url: string; readonly ref?: string }
  | { readonly kind: "archive"; readonly url: string };

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

/** Makes the folder completely or not at all. A folder that exists is used as it is. */
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
    if (base?.kind === "git")
      await cloneRepository({ ...(await findHost(base.url, mayBePrivate)), ref: base.ref, folder: temporary });
    if (base?.kind === "archive") await unpack(await findHost(base.url, mayBePrivate), temporary);
  } catch (error) {
    // The owner's file is removed last, as in `keepSwept`.
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
  /** The address of its host. Only this address is used, even if the name leads elsewhere a moment later. */
  readonly address: string;
}

/** Only over HTTPS. For anybody but the operator, never from a machine in the network that the service is in. */
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

const sweepMs = 10 * 60_000;

/** Removes the folders of sessions that no longer exist: when a session is removed, at the start, and now and then. */
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
    // The owner's file is removed last, so that what is interrupted here is found again.
    for (const path of [cwd, `${cwd}.new`, `${cwd}.states`, undoFile(cwd), ownerOf(cwd)])
      rmSync(path, { recursive: true, force: true });
  }
}
