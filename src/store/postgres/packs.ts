/** Pieces of sessions' folders in PostgreSQL. Large ones are in a separate store, and their row holds the name. */
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { blobName, type BlobStore, type PackStore } from "../packs.ts";
import type { Database } from "./database.ts";

/** Options of `createPostgresPacks`. */
export interface PostgresPacksOptions {
  /** The database that all processes share. */
  readonly database: Database;
  /** Left out: everything goes into the database. */
  readonly blobs?: BlobStore;
  /** Pieces that are larger than this go into `blobs`. */
  readonly maxBytes?: number;
}

const packsShape = optionsShape<PostgresPacksOptions>(
  { database: "table", blobs: "table", maxBytes: { above: 0 } },
  "database",
);

/** Sessions' folders in the database, large pieces elsewhere. */
export function createPostgresPacks(options: PostgresPacksOptions): PackStore {
  checkOptions("createPostgresPacks", options, packsShape);
  const { database, blobs, maxBytes = 1024 * 1024 } = options;
  return {
    async add(session, pack) {
      const isLarge = blobs !== undefined && pack.length > maxBytes;
      const name = isLarge ? blobName(session, pack) : undefined;
      // The piece is written before its row, because a row without its piece could not be read.
      if (name !== undefined) await blobs?.put(name, pack);
      await database.query(
        "insert into callgate.pack (session, tenant, bytes, blob) select id, tenant, $2, $3 from callgate.session where id = $1",
        [session, name === undefined ? Buffer.from(pack) : null, name ?? null],
      );
    },
    async *read(session) {
      const { rows } = await database.query<{ id: string }>(
        "select id from callgate.pack where session = $1 order by id",
        [session],
      );
      // One at a time, because together they may be larger than memory.
      for (const { id } of rows) {
        const found = await database.query<{ bytes: Uint8Array | null; blob: string | null }>(
          "select bytes, blob from callgate.pack where id = $1",
          [id],
        );
        const { bytes, blob } = found.rows[0]!;
        if (bytes !== null) yield bytes;
        else if (blobs === undefined)
          throw new Error("a part of the session's files is in a store that is not named here");
        else yield await blobs.get(blob!);
      }
    },
    async remove(session) {
      const { rows } = await database.query<{ blob: string | null }>(
        "delete from callgate.pack where session = $1 returning blob",
        [session],
      );
      for (const { blob } of rows) if (blob !== null) await blobs?.remove(blob);
    },
  };
}
