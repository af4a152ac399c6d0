/** Where the service keeps its sessions: in a folder, for one process, or in PostgreSQL, for any number of them. */
import { join } from "node:path";
import { defined } from "../../base/json.ts";
import {
  createFileStore,
  createFolderBlobs,
  openLimitFile,
  createS3Blobs,
  openTokenFile,
  type BlobStore,
  type Dispatcher,
  type LimitStore,
  type PackStore,
  type ServiceOptions,
  type SessionStore,
  type TokenStore,
} from "../../serve/index.ts";
import { defaultLimits } from "../../serve/limits.ts";
import { UsageError } from "../io.ts";

export type ServeRole = "api" | "worker";

export interface Backing extends Pick<ServiceOptions, "shared"> {
  readonly store: SessionStore;
  readonly tokens: TokenStore;
  /** What tenants may use. */
  readonly limits: NonNullable<ServiceOptions["limits"]>;
  /** Left out: sessions run in this process. */
  readonly dispatcher?: Dispatcher;
  /** The name of this process among the workers. */
  readonly worker?: string;
  /** What sessions did to their files, for the process that continues them. */
  readonly packs?: PackStore;
}

export interface BackingOptions {
  readonly folder: string;
  readonly database: string | undefined;
  readonly operator: string;
  readonly places: number | undefined;
  /** A folder that all workers share, or a bucket's address, for what is too large for the database. */
  readonly files: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly frozenAfterMs: number | undefined;
  readonly onError: (error: unknown, where: string) => void;
}

export async function openBacking(options: BackingOptions): Promise<Backing> {
  const { folder, database, operator } = options;
  if (database !== undefined) return openInDatabase(database, options);
  try {
    return {
      store: createFileStore({ folder, ownTenant: operator }),
      tokens: openTokenFile(join(folder, "serve", "tokens.json")),
      limits: openLimitFile(join(folder, "serve", "limits.json")).get,
    };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

async function openInDatabase(
  url: string,
  { places, files, frozenAfterMs, onError, env }: BackingOptions,
): Promise<Backing> {
  const {
    createDbosDispatcher,
    createPostgresBooks,
    createPostgresLimits,
    createPostgresPacks,
    createPostgresStore,
    createPostgresTokens,
    openDatabase,
  } = await import("../../serve/postgres.ts");
  // Our own use of the driver causes a deprecation warning at every start, about which a user can do nothing.
  process.noDeprecation = true;
  const database = await openDatabase({ url }).catch((error: unknown) => {
    throw new UsageError(`cannot use the database: ${words(error)}`);
  });
  const blobs = await openBlobs(files, env).catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
  const packs = createPostgresPacks({ database, ...(blobs === undefined ? {} : { blobs }) });
  const store = await createPostgresStore({
    database,
    packs,
    onError: (error) => onError(error, "the database"),
    ...(frozenAfterMs === undefined ? {} : { frozenAfterMs }),
  });
  const limits = createPostgresLimits(database);
  const dispatcher = await createDbosDispatcher({
    database,
    store,
    mayRun: async (tenant) => (await limits.get(tenant)).running ?? defaultLimits.running,
    onError: (error, id) => onError(error, id),
    ...(places === undefined ? {} : { places }),
  }).catch(async (error: unknown) => {
    await store.close();
    throw new UsageError(words(error));
  });
  return {
    store,
    dispatcher,
    packs,
    tokens: createPostgresTokens(database),
    limits: limits.get,
    shared: createPostgresBooks(database),
    worker: store.worker,
  };
}

/** Tried before anything is kept there: a bucket that refuses is better known now than after the first large file. */
async function openBlobs(files: string | undefined, env: NodeJS.ProcessEnv): Promise<BlobStore | undefined> {
  if (files === undefined) return undefined;
  if (/^s3:/i.test(files))
    throw new UsageError("--files takes the bucket's address, such as https://s3.eu-central-1.amazonaws.com/BUCKET");
  const blobs = /^https?:\/\//i.test(files) ? openBucket(files, env) : createFolderBlobs(files);
  try {
    await blobs.put("check", Buffer.from("callgate"));
    await blobs.remove("check");
  } catch (error) {
    throw new UsageError(`cannot keep files in ${files}: ${words(error)}`);
  }
  return blobs;
}

/** The keys have the names that every tool for such stores reads them under. */
function openBucket(url: string, env: NodeJS.ProcessEnv): BlobStore {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey)
    throw new UsageError("a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment");
  const sessionToken = env["AWS_SESSION_TOKEN"] || undefined;
  const region = env["AWS_REGION"] || env["AWS_DEFAULT_REGION"] || undefined;
  try {
    return createS3Blobs({ url, accessKeyId, secretAccessKey, ...defined({ sessionToken, region }) });
  } catch (error) {
    throw new UsageError(`--files: ${words(error)}`);
  }
}

/** Tokens and limits alone, for the commands that look at them and change them. */
export async function withBooks<T>(
  { folder, database: url }: { readonly folder: string; readonly database: string | undefined },
  work: (books: { readonly tokens: TokenStore; readonly limits: LimitStore }) => Promise<T>,
): Promise<T> {
  if (url === undefined) {
    const path = (name: string) => join(folder, "serve", name);
    return work({ tokens: openTokenFile(path("tokens.json")), limits: openLimitFile(path("limits.json")) });
  }
  const { createPostgresLimits, createPostgresTokens, openDatabase } = await import("../../serve/postgres.ts");
  const database = await openDatabase({ url }).catch((error: unknown) => {
    throw new UsageError(`cannot use the database: ${words(error)}`);
  });
  try {
    return await work({ tokens: createPostgresTokens(database), limits: createPostgresLimits(database) });
  } finally {
    await database.close();
  }
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
