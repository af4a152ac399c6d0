// A PostgreSQL of one's own, from the system's programs, in a temporary folder and on a free port.
import { execFile } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";

const run = promisify(execFile);

/** `bin`: the folder that holds `initdb` and `pg_ctl`. */
export async function startPostgres(bin) {
  const folder = mkdtempSync(join(tmpdir(), "callgate-postgres-"));
  const data = join(folder, "data");
  mkdirSync(data);
  // The server refuses to run as root.
  const who = process.getuid?.() === 0 ? findUser() : {};
  if ("uid" in who) for (const path of [folder, data]) chownSync(path, who.uid, who.gid);
  const start = { ...who, cwd: folder };
  const port = await freePort();
  await run(join(bin, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"], start);
  const settings = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200`;
  const control = (...args) => run(join(bin, "pg_ctl"), ["-D", data, "-w", "-s", ...args], start);
  const begin = () => control("-o", settings, "-l", join(folder, "log"), "start");
  await begin();
  const url = (name) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  let databases = 0;
  return {
    url: url("postgres"),
    /** A new, empty database on the same server. */
    async database() {
      const name = `test_${++databases}`;
      await this.query(`create database ${name}`);
      return url(name);
    },
    async query(text) {
      const client = new pg.Client({ connectionString: url("postgres") });
      client.on("error", () => undefined); // it may end itself
      await client.connect();
      try {
        return (await client.query(text)).rows;
      } finally {
        await client.end();
      }
    },
    /** Ends it as a crash would, and starts it again. */
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

function findUser() {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith("postgres:") || entry.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
