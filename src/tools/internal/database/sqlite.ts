/** SQLite through whichever driver is there. */
import { pathToFileURL } from "node:url";
import { CallError, type ToolContext } from "../../../index.ts";
import type { Connection, Rows, Use } from "./connection.ts";
import { inlineParameters, type SqlValue, type Statement } from "./sql.ts";

/** The part that node:sqlite and better-sqlite3 have in common. */
interface Driver {
  prepare(sql: string): {
    all(...values: readonly SqlValue[]): unknown[];
    run(...values: readonly SqlValue[]): { readonly changes: number | bigint };
  };
  close(): void;
}

/** A SQLite file through whichever driver is there: Node's own, better-sqlite3, or the sqlite3 program. */
export async function openSqlite(path: string, use: Use, ctx: ToolContext): Promise<Connection> {
  const readOnly = use === "read";
  const builtIn = nodeSqlite();
  if (builtIn) return fromDriver("node:sqlite", new builtIn.DatabaseSync(path, { readOnly }), use);
  const better = (await tryImport("better-sqlite3")) as
    | { default: new (path: string, options: object) => Driver }
    | undefined;
  if (better) return fromDriver("better-sqlite3", new better.default(path, { readonly: readOnly }), use);
  return fromProgram(path, use, ctx);
}

/** Node's own driver, from 22.5 on. Its warning that it is experimental is of no use to whoever runs the tool. */
function nodeSqlite(): { readonly DatabaseSync: new (path: string, options: object) => Driver } | undefined {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    // Its types say more than we use, and differ between versions of Node.
    return process.getBuiltinModule("node:sqlite") as unknown as ReturnType<typeof nodeSqlite>;
  } finally {
    process.emitWarning = emitWarning;
  }
}

async function tryImport(name: string): Promise<unknown> {
  try {
    return await import(name);
  } catch {
    // Older Node, or not installed: the next driver is tried.
    return undefined;
  }
}

function fromDriver(name: string, driver: Driver, use: Use): Connection {
  return {
    driver: name,
    async run(sql, _statement, values): Promise<Rows> {
      const bound = values.map((value) => (typeof value === "boolean" ? Number(value) : value));
      try {
        const prepared = driver.prepare(sql);
        // Both drivers give plain objects by column name.
        if (use === "read") return { rows: prepared.all(...bound) as Record<string, unknown>[] };
        return { rows: [], changes: Number(prepared.run(...bound).changes) };
      } catch (error) {
        throw sqlError(error);
      }
    },
    close: async () => driver.close(),
  };
}

/** The sqlite3 program, in the call's own sandbox. Its safe mode cannot leave the file. */
function fromProgram(path: string, use: Use, ctx: ToolContext): Connection {
  return {
    driver: "sqlite3",
    async run(sql, statement: Statement, values): Promise<Rows> {
      const text = inlineParameters(sql, statement, values).replace(/;\s*$/, "");
      const counted = use === "read" ? text : `${text};\nselect changes() as changes`;
      const isWal = await keepsWal(path, ctx);
      const made = use === "read" ? [] : await makeBeside(path, isWal ? ["-wal", "-shm"] : ["-journal"], ctx);
      const result = await ctx.exec
        .run({
          argv: ["sqlite3", ...(await sqliteOptions(path, use, isWal, ctx)), counted],
          timeoutMs: 60_000,
          maxOutputBytes: 8 * 1024 * 1024,
          keep: false,
        })
        .finally(() => removeEmpty(made, ctx));
      if (result.exitCode !== 0)
        throw sqlError(new Error(`${result.stderr.head}${result.stderr.tail}`.trim() || "sqlite3 could not be run"));
      if (result.stdout.droppedBytes > 0)
        throw new CallError("failed", "The answer is too large.", { hint: "Add LIMIT to the query." });
      return toRows(result.stdout.head + result.stdout.tail, use);
    },
    close: async () => undefined,
  };
}

async function sqliteOptions(path: string, use: Use, isWal: boolean, ctx: ToolContext): Promise<readonly string[]> {
  const common = ["-safe", "-batch", "-bail", "-json"];
  // The journal is emptied and not removed, because the program may not change the folder around it.
  if (use === "write") return [...common, ...(isWal ? [] : ["-cmd", "pragma journal_mode=truncate"]), path];
  // Reading a database with a write-ahead log creates files beside it, unless the log is empty.
  const isQuiet = isWal && ((await ctx.files.stat(`${path}-wal`))?.sizeBytes ?? 0) === 0;
  return [...common, "-readonly", isQuiet ? `${pathToFileURL(path).href}?immutable=1` : path];
}

/** The write format in the header of a SQLite file: 2 is a write-ahead log. */
async function keepsWal(path: string, ctx: ToolContext): Promise<boolean> {
  if ((await ctx.files.stat(path)) === undefined) return false;
  const { head } = await ctx.files.slice(path, 1, 1, { maxBytes: 512 });
  return head[18] === 2;
}

/** Only an existing file can be opened to the sandbox by its name. */
async function makeBeside(path: string, endings: readonly string[], ctx: ToolContext): Promise<readonly string[]> {
  const made: string[] = [];
  for (const beside of endings.map((ending) => `${path}${ending}`)) {
    if ((await ctx.files.stat(beside)) !== undefined) continue;
    await ctx.files.write(beside, "");
    made.push(beside);
  }
  return made;
}

async function removeEmpty(made: readonly string[], ctx: ToolContext): Promise<void> {
  const sizes = await Promise.all(made.map(async (path) => (await ctx.files.stat(path))?.sizeBytes));
  // A log that is not empty now belongs to the database, together with its index.
  if (sizes.some((size, index) => (size ?? 0) > 0 && !made[index]!.endsWith("-shm"))) return;
  for (const [index, path] of made.entries()) if (sizes[index] !== undefined) await ctx.files.remove(path);
}

function toRows(output: string, use: Use): Rows {
  // One JSON array per statement that gives rows; nothing at all when there are none.
  const last =
    output.trim() === ""
      ? []
      : (JSON.parse(output.slice(use === "read" ? 0 : output.lastIndexOf("[{"))) as Record<string, unknown>[]);
  return use === "read" ? { rows: last } : { rows: [], changes: Number(last[0]?.["changes"] ?? 0) };
}

function sqlError(error: unknown): CallError {
  return new CallError("failed", `The database says: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
