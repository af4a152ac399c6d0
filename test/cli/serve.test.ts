/** `callgate serve`, as a program starts it: one line on stdout, the offline model, a kill, a restart, SIGTERM. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeAll, expect, test } from "vitest";
import { createClient, type Client } from "../../src/client/index.ts";
import { canHold } from "../runtime/effects/held.ts";
import { cli, ensureBuilt, tempFolder } from "./run.ts";

beforeAll(() => ensureBuilt(), 120_000);

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly token: string;
  readonly link: string;
  readonly client: Client;
  readonly lines: string[];
}

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

async function start(home: string, cwd: string, ...flags: string[]): Promise<Started> {
  const child = spawn(process.execPath, [cli, "serve", "--port", "0", "--json", ...flags], {
    cwd,
    env: { ...process.env, CALLGATE_HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const lines: string[] = [];
  const first = await new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`serve ended with ${code}`)));
    createInterface({ input: child.stdout! }).on("line", (line) => {
      lines.push(line);
      resolve(line);
    });
  });
  const { url, token, link } = JSON.parse(first) as { url: string; token: string; link: string };
  return { child, url, token, link, lines, client: createClient({ url, token }) };
}

const ended = (child: ChildProcess) => new Promise<number | null>((resolve) => child.once("exit", resolve));

async function untilEnded(client: Client, id: string): Promise<void> {
  await expect
    .poll(async () => (await client.records(id)).records.some(({ type }) => type === "turn.ended"), { timeout: 30_000 })
    .toBe(true);
}

test("one line says where it is; a message is answered; a killed service goes on after its restart; SIGTERM ends it", async () => {
  const home = tempFolder("serve-home");
  const cwd = tempFolder("serve-work");
  const first = await start(home, cwd);
  expect(first.link.startsWith(`${first.url}/?link=`)).toBe(true);
  const { id } = await first.client.create({ title: "echo" });
  await first.client.send(id, { text: "run echo hello" });
  await untilEnded(first.client, id);
  expect(JSON.stringify((await first.client.records(id)).records)).toContain("hello");
  expect(await first.client.me()).toMatchObject({ tenant: "main", roles: ["watch", "talk", "approve", "administer"] });
  expect(await first.client.tools()).toMatchObject({ tools: expect.any(Array) as unknown[] });
  expect(await first.client.checkPolicy("rm -rf /")).toMatchObject({
    decision: expect.stringMatching(/ask|deny/) as string,
  });
  first.child.kill("SIGKILL");
  await ended(first.child);

  const second = await start(home, cwd);
  expect((await second.client.sessions()).sessions.map((session) => session.id)).toContain(id);
  await second.client.send(id, { text: "run echo again" });
  await expect.poll(async () => (await second.client.session(id)).session.status, { timeout: 30_000 }).toBe("idle");
  const stopped = ended(second.child);
  second.child.kill("SIGTERM");
  expect(await stopped).toBe(0);
  expect(second.lines).toHaveLength(1);
}, 120_000);

test("a question of one session is answered over the API, in a folder of its own", async () => {
  const home = tempFolder("serve-home");
  const service = await start(home, tempFolder("serve-work"), "--approval", "unless-trusted");
  const { client } = service;
  const { id } = await client.create({ base: { kind: "empty" } });
  await client.send(id, { text: "run touch made.txt" });
  await expect.poll(async () => (await client.approvals()).length, { timeout: 30_000 }).toBe(1);
  const [{ request }] = (await client.approvals()) as [Awaited<ReturnType<Client["approvals"]>>[number]];
  await client.approve(id, request.call.id, { answer: "once", hash: request.hash });
  await untilEnded(client, id);
  const { records } = await client.records(id);
  expect(records.find(({ type }) => type === "call.ended")).toMatchObject({ call: { ok: true } });
  const stopped = ended(service.child);
  service.child.kill("SIGTERM");
  expect(await stopped).toBe(0);
}, 120_000);

test.skipIf(!canHold).each(["SIGTERM", "SIGKILL"] as const)(
  "a question about what a held command did outlives its process (%s): the command runs again, and is asked about anew (needs bubblewrap)",
  async (signal) => {
    const [home, cwd] = [tempFolder("serve-home"), tempFolder("serve-work")];
    mkdirSync(join(cwd, "old"));
    writeFileSync(join(cwd, "old", "notes.txt"), "x");
    const first = await start(home, cwd);
    const { id } = await first.client.create({});
    await first.client.send(id, { text: "run rm -rf old" });
    await expect.poll(async () => (await first.client.approvals()).length, { timeout: 30_000 }).toBe(1);
    const gone = ended(first.child);
    first.child.kill(signal);
    await gone;
    const { client } = await start(home, cwd);
    const started = async () => (await client.records(id)).records.filter(({ type }) => type === "call.started").length;
    await expect.poll(started, { timeout: 30_000 }).toBe(2);
    await expect.poll(async () => (await client.approvals()).length, { timeout: 30_000 }).toBe(1);
    expect(existsSync(join(cwd, "old"))).toBe(true);
    await expect
      .poll(
        async () => {
          const [waiting] = await client.approvals();
          if (waiting === undefined) return "answered";
          const { call, hash } = waiting.request;
          return client.approve(id, call.id, { answer: "once", hash }).then(
            () => "answered",
            () => "changed", // the old question, just before the new one took its place
          );
        },
        { timeout: 30_000 },
      )
      .toBe("answered");
    await untilEnded(client, id);
    expect(existsSync(join(cwd, "old"))).toBe(false);
    const { records } = await client.records(id);
    expect(records.filter(({ type }) => type === "call.ended")).toHaveLength(1);
    expect(records.filter(({ type }) => type === "effects.settled")).toHaveLength(1);
  },
  120_000,
);

test.skipIf(!canHold)(
  "a kept run of a session is taken back over the API, and the session and its model hear of it (needs bubblewrap)",
  async () => {
    const service = await start(tempFolder("serve-home"), tempFolder("serve-work"), "--approval", "unless-trusted");
    const { client } = service;
    const { id } = await client.create({ base: { kind: "empty" } });
    const undoAll = async () => (await client.undo(id)) as { undone: object[]; conflicts: string[] };
    const play = async (text: string) => {
      await client.send(id, { text });
      await expect.poll(async () => (await client.approvals()).length, { timeout: 30_000 }).toBe(1);
      const [{ request }] = (await client.approvals()) as [Awaited<ReturnType<Client["approvals"]>>[number]];
      await client.approve(id, request.call.id, { answer: "once", hash: request.hash });
      await expect.poll(async () => (await client.session(id)).session.status, { timeout: 30_000 }).toBe("idle");
      return request;
    };
    const request = await play("run touch made.txt");
    expect(request.effects).toMatchObject({ list: [{ path: "made.txt", kind: "added" }] });
    const run = request.effects!.run;
    expect(await undoAll()).toEqual({ undone: [{ run, action: "taken back" }], conflicts: [] });
    expect(await undoAll()).toEqual({ undone: [], conflicts: ["there is nothing to take back"] });
    const again = await play("run test ! -e made.txt && touch other.txt");
    expect(again.effects).toMatchObject({ list: [{ path: "other.txt", kind: "added" }] });
    const { records } = await client.records(id);
    expect(records.filter(({ type }) => type === "effects.undone")).toMatchObject([
      { run, what: "touch made.txt: 1 added" },
    ]);
    expect(JSON.stringify(records)).toContain("[The user took back what was done here: touch made.txt: 1 added.");
    service.child.kill("SIGTERM");
  },
  120_000,
);
