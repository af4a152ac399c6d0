/** What sessions did to their folders, in pieces from which another process can restore them. */
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The pieces from which sessions' folders are restored, on any machine. */
export interface PackStore {
  add(session: string, pack: Uint8Array): Promise<void>;
  /** The packs of a session, the oldest first. */
  read(session: string): AsyncIterable<Uint8Array>;
  remove(session: string): Promise<void>;
}

/** Where large pieces are stored, by name: a bucket, or a folder that all processes share. */
export interface BlobStore {
  put(name: string, bytes: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array>;
  /** Removing one that does not exist is not an error. */
  remove(name: string): Promise<void>;
}

/** Large pieces in a folder that all processes share. */
export function createFolderBlobs(folder: string): BlobStore {
  const pathOf = (name: string) => {
    if (!/^[\w-]+(\/[\w-]+)*$/.test(name)) throw new Error(`'${name}' is no name of a piece`);
    return join(folder, name);
  };
  return {
    async put(name, bytes) {
      const path = pathOf(name);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      // Written completely or not at all, because another process may be reading.
      const temporary = `${path}.${randomUUID()}.new`;
      try {
        await writeFile(temporary, bytes, { mode: 0o600 });
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
    },
    get: (name) => readFile(pathOf(name)),
    remove: (name) => rm(pathOf(name), { force: true }),
  };
}

export function blobName(session: string, bytes: Uint8Array): string {
  return `${session}/${createHash("sha256").update(bytes).digest("hex")}`;
}
