/** Folders of sessions, through the built command: where they come from, which worker has them, and that they go. */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createClient, type Client, type NewSession } from "../../src/client/index.ts";
import { cli, ensureBuilt, run, tempFolder } from "../cli/run.ts";
import { makeCertificate } from "../certificate.ts";
import { has } from "../needs.ts";
import { startPostgres, type TestPostgres } from "../postgres.ts";
import { untilEnded, untilStatus } from "./service.ts";

beforeAll(() => ensureBuilt(), 120_000);

interface Told {
  readonly url: string;
  readonly token: string;
}

/** A process of the command, ready; ended with the test. */
async function serve(data: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Told> {
  const child = spawn(process.execPath, [cli, "serve", "--json", "--data", data, ...args], {
    cwd: tempFolder("work"),
    env: { PATH: process.env["PATH"] ?? "", HOME: tempFolder("home"), CALLGATE_HOME: data, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`serve ended with ${code}`)));
  });
  return JSON.parse(line) as Told;
}

const foldersOf = (data: string) => {
  const folder = join(data, "serve", "workspaces");
  return existsSync(folder) ? readdirSync(folder) : [];
};

const ownersIn = (data: string) => foldersOf(data).filter((name) => name.endsWith(".session"));

async function play(client: Client, session: NewSession, text: string): Promise<{ id: string; said: string }> {
  const { id } = await client.create(session);
  await client.send(id, { text });
  await expect
    .poll(async () => (await client.records(id)).records.map(({ type }) => type), { timeout: 30_000 })
    .toEqual(expect.arrayContaining([expect.stringMatching(/^(turn\.ended|mail\.dropped)$/)]));
  await untilStatus(client, id, "idle");
  return { id, said: JSON.stringify((await client.records(id)).records) };
}

describe.skipIf(!has("openssl"))("bases over HTTPS (needs openssl)", { timeout: 120_000 }, () => {
  let server: Server;
  let base: string;
  let certificate: string;

  beforeAll(async () => {
    const folder = tempFolder("bases");
    const made = makeCertificate();
    certificate = made.certificate;
    const work = join(folder, "work");
    mkdirSync(work);
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", "-C", work, ...args], {
        stdio: "ignore",
      });
    git("init", "-q");
    for (const version of ["first", "second"]) {
      writeFileSync(join(work, "note.txt"), `the ${version} note\n`);
      git("add", "-A");
      git("commit", "-qm", version);
      git("tag", version);
    }
    const files = join(folder, "files");
    mkdirSync(files);
    execFileSync("git", ["clone", "-q", "--bare", work, join(files, "repo.git")]);
    execFileSync("git", ["-C", join(files, "repo.git"), "update-server-info"]);
    execFileSync("tar", ["-czf", join(files, "notes.tar.gz"), "-C", work, "note.txt"]);
    writeFileSync(join(files, "broken.tar.gz"), "no archive");
    // A file of 5 GB that is one hole: the archive has a few hundred bytes.
    writeFileSync(join(folder, "bomb"), "");
    truncateSync(join(folder, "bomb"), 5 * 1024 ** 3);
    execFileSync("tar", ["-czSf", join(files, "bomb.tar.gz"), "-C", folder, "bomb"]);
    server = createServer({ key: readFileSync(made.key), cert: readFileSync(certificate) }, (request, response) => {
      const { pathname } = new URL(request.url ?? "/", "https://x");
      if (pathname === "/moved.tar.gz") return void response.writeHead(302, { location: "/notes.tar.gz" }).end();
      const path = join(files, normalize(pathname));
      if (existsSync(path) && !path.endsWith("/")) response.end(readFileSync(path));
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    base = `https://localhost:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server?.close());

  const trusting = () => ({ NODE_EXTRA_CA_CERTS: certificate, GIT_SSL_CAINFO: certificate });

  test("a session begins with a repository at a ref or an archive, and its folder goes with it", async () => {
    const data = tempFolder("state");
    const { url, token } = await serve(data, ["--port", "0", "--base-host", "localhost"], trusting());
    const client = createClient({ url, token });
    const made = await run(["serve", "token", "add", "x", "--tenant", "team", "--roles", "watch,talk", "--data", data]);
    const other = createClient({ url, token: made.stdout.trim() });
    const read = async (from: NewSession["base"] & {}, who = client) => play(who, { base: from }, "read note.txt");
    const cases: readonly (readonly [NewSession["base"] & {}, string, Client?])[] = [
      [{ kind: "git", url: `${base}/repo.git` }, "the second note"],
      [{ kind: "git", url: `${base}/repo.git`, ref: "first" }, "the first note"],
      [{ kind: "archive", url: `${base}/notes.tar.gz` }, "the second note"],
      [{ kind: "git", url: `${base}/none.git` }, "not found"],
      [{ kind: "git", url: `${base}/repo.git`, ref: "nowhere" }, "nowhere"],
      [{ kind: "archive", url: `${base}/moved.tar.gz` }, "HTTP 302"],
      [{ kind: "archive", url: `${base}/broken.tar.gz` }, "none that tar can read"],
      [{ kind: "archive", url: `${base}/bomb.tar.gz` }, "unpacks to more than 1 GB"],
      [{ kind: "archive", url: base.replace("https", "http") }, "an https address"],
      // Another tenant reaches a machine of this network only where its host is named.
      [{ kind: "git", url: `${base}/repo.git` }, "the second note", other],
      [{ kind: "archive", url: `${base.replace("localhost", "127.0.0.1")}/x` }, "is at a private address", other],
    ];
    await Promise.all(cases.map(async ([from, words, who]) => expect((await read(from, who)).said).toContain(words)));
    // Of a base that could not be had nothing is left: four could.
    expect(ownersIn(data)).toHaveLength(4);
    expect(foldersOf(data).filter((name) => name.endsWith(".new"))).toEqual([]);
    for (const { id } of (await client.sessions()).sessions) await client.remove(id);
    // The other tenant's is still there.
    await expect.poll(() => ownersIn(data), { timeout: 20_000 }).toHaveLength(1);
  });
});

describe.skipIf(!has("PostgreSQL"))("two workers (needs PostgreSQL)", { timeout: 120_000 }, () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 60_000);
  afterAll(() => postgres?.stop());

  test("a session stays with the worker that has its folder, and a removed one's folder goes there", async () => {
    const database = ["--database", await postgres.database()];
    const api = await serve(tempFolder("api"), [...database, "--role", "api", "--port", "0"]);
    const workers = [tempFolder("worker"), tempFolder("worker")];
    await Promise.all(workers.map((data) => serve(data, [...database, "--role", "worker"])));
    const client = createClient({ url: api.url, token: api.token });
    const ids = await Promise.all(
      Array.from({ length: 3 }, async () => (await client.create({ base: { kind: "empty" } })).id),
    );
    for (const turn of [1, 2]) {
      await Promise.all(
        ids.map((id) => client.send(id, { text: `create file turn${turn}.txt with text 'turn ${turn}'` })),
      );
      for (const id of ids) await untilEnded(client, id, turn);
    }
    for (const id of ids) {
      const { records } = await client.records(id);
      const folders = records.filter(({ type }) => type === "session.started").map((record) => record["cwd"]);
      expect(new Set(folders).size).toBe(1);
      expect(records.filter(({ type }) => type === "workspace.restored")).toEqual([]);
    }
    for (const id of ids) {
      await untilStatus(client, id, "idle");
      await client.remove(id);
    }
    await expect.poll(() => workers.flatMap(foldersOf), { timeout: 20_000 }).toEqual([]);
  });
});
