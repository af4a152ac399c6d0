/** A PostgreSQL of the test's own, from the system's programs, in a temporary folder and on a free port. */
import { execFile } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { postgresFolder } from "./needs.ts";

export interface TestPostgres {
  readonly url: string;
  /** A new, empty database on the same server. */
  database(): Promise<string>;
  /** Ends it as a crash would, and starts it again. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const run = promisify(execFile);
let databases = 0;

export async function startPostgres(): Promise<TestPostgres> {
  const bin = postgresFolder();
  if (bin === undefined) throw new Error("PostgreSQL is not installed here");
  const folder = mkdtempSync(join(tmpdir(), "callgate-postgres-"));
  const data = join(folder, "data");
  mkdirSync(data);
  // The server refuses to run as root.
  const who = process.getuid?.() === 0 ? findUser() : undefined;
  if (who !== undefined) for (const path of [folder, data]) chownSync(path, who.uid, who.gid);
  const start = { ...who, cwd: folder };
  const port = await freePort();
  await run(join(bin, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"], start);
  const settings = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200`;
  const control = (...args: string[]) => run(join(bin, "pg_ctl"), ["-D", data, "-w", "-s", ...args], start);
  const begin = () => control("-o", settings, "-l", join(folder, "log"), "start");
  await begin();
  const url = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  return {
    url: url("postgres"),
    async database() {
      const name = `test_${++databases}`;
      const client = new pg.Client({ connectionString: url("postgres") });
      await client.connect();
      await client.query(`create database ${name}`);
      await client.end();
      return url(name);
    },
    async restart() {
      await control("-m", "immediate", "stop");
      await begin();
    },
    async stop() {
      await control("-m", "immediate", "stop");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function findUser(): { readonly uid: number; readonly gid: number } {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith("postgres:") || entry.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
