import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  inlineParameters,
  readStatement,
  requireReading,
  requireWriting,
} from "../../../src/tools/internal/database/sql.ts";
import { has } from "../../needs.ts";
import { engineIn, newWorkspace } from "../workspace.ts";

const hasDriver = has("sqlite3") || process.getBuiltinModule("node:sqlite") !== undefined;

describe.skipIf(!hasDriver)("a SQLite file, through whichever driver this machine has (needs sqlite3)", () => {
  let ws: string;
  let at: ReturnType<typeof engineIn>;
  beforeEach(async () => {
    ws = newWorkspace();
    at = engineIn(ws, { sandbox: "full-access" });
    await update("create table people (name text, age integer)");
  });
  afterEach(() => at.engine.close());

  const query = async (sql: string, params: readonly (string | number | null)[] = []) =>
    JSON.parse(await at.ask("internal_database_query", { database: "db.sqlite", sql, params: [...params] })) as {
      rows: unknown[];
      count: number;
    };
  const update = async (sql: string, params: readonly (string | number | null)[] = []) =>
    JSON.parse(await at.ask("internal_database_update", { database: "db.sqlite", sql, params: [...params] })) as {
      changes: number;
    };

  test("what is written can be read, parameters kept apart from the statement", async () => {
    expect(
      await update("insert into people values (?, ?), ('Bo', null)", ["O'Hara; drop table people --", 41]),
    ).toEqual({ changes: 2 });
    expect(await query("select name, age from people where age = ?", [41])).toEqual({
      rows: [{ name: "O'Hara; drop table people --", age: 41 }],
      count: 1,
    });
    expect(await query("select * from people where 0")).toEqual({ rows: [], count: 0 });
  });

  test("reading and writing do not mix", async () => {
    await expect(query("delete from people")).rejects.toThrow(/only reads/);
    await expect(query("with x as (select 1) delete from people")).rejects.toThrow(/only reads/);
    await expect(query("pragma user_version = 7")).rejects.toThrow(/readonly|read-only/);
    await expect(update("select 1")).rejects.toThrow(/only reads/);
  });

  test("nothing reaches outside the file", async () => {
    await expect(update(`attach '${join(ws, "other.db")}' as o`)).rejects.toThrow(/denied/);
    await expect(update(`vacuum into '${join(ws, "other.db")}'`)).rejects.toThrow(/denied/);
    await expect(query("select readfile('/etc/passwd')")).rejects.toThrow(/denied/);
    await expect(query(".shell id")).rejects.toThrow(/no SQL statement/);
    expect(existsSync(join(ws, "other.db"))).toBe(false);
  });

  test("what the database says is told", async () => {
    await expect(query("select x from nowhere")).rejects.toThrow(/no such table/);
    await expect(query("select ?")).rejects.toThrow(/1 placeholders/);
    await expect(at.ask("internal_database_query", { database: "none.db", sql: "select 1" })).rejects.toThrow(
      /no database/,
    );
  });
});

test("PostgreSQL is a host to the gate, and without its driver the answer says what to install or why not", async () => {
  const { ask } = engineIn(newWorkspace(), { sandbox: "full-access" });
  await expect(
    ask("internal_database_query", { database: "postgres://u@127.0.0.1:1/x", sql: "select 1" }),
  ).rejects.toThrow(/pg|reached|approv|denied|network/);
});

describe("reading a statement", () => {
  test.each(["select 1; select 2", "select 1; /* x */ drop table t"])("%s is two", (sql) => {
    expect(() => readStatement(sql)).toThrow(/One statement/);
  });

  test("strings and comments hold no words and no placeholders", () => {
    const statement = readStatement("select 'a; drop ?' -- ; delete\n, \"attach\" /* ? */ from t where x = ?;");
    expect([...statement.words]).toEqual(["select", "from", "t", "where", "x"]);
    expect(statement.placeholders).toHaveLength(1);
    expect(() => requireReading(statement)).not.toThrow();
    expect(() => requireWriting(statement)).toThrow();
  });

  test("values are quoted in place", () => {
    const sql = "select ?, '?', ?, ?";
    expect(inlineParameters(sql, readStatement(sql), ["it's", 1.5, null])).toBe("select 'it''s', '?', 1.5, NULL");
  });
});

describe.skipIf(!hasDriver || !has("bubblewrap"))("under the default sandbox (needs sqlite3 and bubblewrap)", () => {
  test("a file that is there already is changed and read, the journal beside it included, without a word on stderr", async () => {
    const at = engineIn(newWorkspace(), { sandbox: "workspace-write" });
    const warnings: unknown[] = [];
    const listen = (warning: unknown) => warnings.push(warning);
    process.on("warning", listen);
    const update = async (sql: string) => {
      const { changes } = JSON.parse(await at.ask("internal_database_update", { database: "db.sqlite", sql }));
      return changes as number;
    };
    await update("create table t (a integer)");
    expect(await update("insert into t values (1), (2)")).toBe(2);
    expect(await update("update t set a = a + 1 where a = 2")).toBe(1);
    expect(
      await at.ask("internal_database_query", { database: "db.sqlite", sql: "select sum(a) as s from t" }),
    ).toContain("4");
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", listen);
    expect(warnings).toEqual([]);
    await at.engine.close();
  });
});
