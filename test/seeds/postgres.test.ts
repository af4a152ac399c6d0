/** PostgreSQL through the database tools, on a real server that this test starts. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine } from "../../src/index.ts";
import { internalTools } from "../../src/tools/index.ts";
import { has, postgresFolder } from "../needs.ts";

/** PostgreSQL refuses to run as root: then it runs as the user that its package made. */
function owner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

describe.skipIf(!has("PostgreSQL"))("PostgreSQL (needs PostgreSQL)", () => {
  let server: ChildProcess;
  let database = "";

  beforeAll(async () => {
    const bin = postgresFolder() ?? "";
    const folder = mkdtempSync(join(tmpdir(), "callgate-postgres-"));
    const as = owner();
    chmodSync(folder, 0o755);
    if (as.uid !== undefined && as.gid !== undefined) chownSync(folder, as.uid, as.gid);
    const data = join(folder, "data");
    execFileSync(join(bin, "initdb"), ["-D", data, "-U", "tester", "-A", "trust", "--no-sync"], {
      ...as,
      cwd: folder,
      stdio: "ignore",
    });
    const port = await freePort();
    const args = ["-D", data, "-h", "127.0.0.1", "-p", String(port), "-k", folder, "-F"];
    server = spawn(join(bin, "postgres"), args, { ...as, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    await new Promise<void>((resolve, reject) => {
      server.stderr?.on("data", (text) => String(text).includes("ready to accept connections") && resolve());
      server.once("exit", (code) => reject(new Error(`postgres ended with ${code}`)));
    });
    database = `postgres://tester@127.0.0.1:${port}/postgres`;
  }, 120_000);

  afterAll(() => {
    server?.kill("SIGINT");
  });

  test("what is written can be read, and a query cannot write", { timeout: 60_000 }, async () => {
    const engine = createEngine({ tools: internalTools, approval: "auto", sandbox: "none" });
    const ask = async (tool: string, sql: string, params: readonly (string | number)[] = []) =>
      engine.call(`internal_database_${tool}`, { database, sql, params: [...params] });
    expect((await ask("update", "create table people (name text, age int)")).ok).toBe(true);
    const added = await ask("update", "insert into people values (?, ?)", ["O'Hara; drop table people --", 41]);
    expect(JSON.parse(added.text)).toMatchObject({ changes: 1 });
    const found = await ask("query", "select name from people where age = ?", [41]);
    expect(JSON.parse(found.text)).toMatchObject({ rows: [{ name: "O'Hara; drop table people --" }], count: 1 });
    const refused = await ask("query", "select setval('x', 1)");
    expect(refused.ok).toBe(false);
    expect((await ask("query", "delete from people")).code).toBe("invalid_input");
    await engine.close();
  });
});
