/** The service over HTTP, through its own client and plain fetch. */
import { readFileSync, writeFileSync } from "node:fs";
import { get, request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync } from "node:zlib";
import * as otel from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterEach, expect, test } from "vitest";
import type { ServiceError, StreamEvent } from "../../src/client/index.ts";
import { createTelemetry } from "../../src/index.ts";
import { createFileStore, openLimitFile, Problem, type TenantLimits } from "../../src/serve/index.ts";
import { openJournal, sessionPath } from "../../src/store/index.ts";
import {
  newFolder,
  startTestService,
  untilEnded,
  untilStatus,
  type TestService,
  type TestServiceOptions,
} from "./service.ts";

const started: TestService[] = [];
const start = async (options: TestServiceOptions) => {
  const service = await startTestService(options);
  started.push(service);
  return service;
};
afterEach(async () => {
  for (const service of started.splice(0)) await service.close();
});

test("a message is answered, and every record is told once, wherever a listener comes in", async () => {
  const service = await start({
    steps: [{ text: "Looking.", calls: [{ name: "look", input: { text: "a" } }] }, { text: "Done." }],
  });
  const client = await service.client();
  const { id } = await client.create({ title: "first" });
  await client.send(id, { text: "go" }, "key-1");
  await client.send(id, { text: "go" }, "key-1");
  await untilStatus(client, id, "idle");
  const { records } = await client.records(id);
  expect(records.filter(({ type }) => type === "turn.started")).toHaveLength(1);
  expect(records.at(-1)).toMatchObject({ type: "turn.ended", reason: "done" });
  expect(service.ran).toEqual(["look a"]);
  for (let after = -1; after < records.length; after++) {
    const seen = await readStream(client.events(id, after, AbortSignal.timeout(20_000)), records.length - 1 - after);
    expect(seen).toEqual(records.slice(after + 1).map(({ n }) => n));
  }
  expect((await client.sessions()).sessions[0]).toMatchObject({ id, title: "first", kind: "session" });
});

async function readStream(events: AsyncIterable<StreamEvent>, count: number): Promise<readonly number[]> {
  const seen: number[] = [];
  if (count <= 0) return seen;
  for await (const event of events) {
    if (event.type === "record") seen.push(event.record.n);
    if (seen.length === count) break;
  }
  return seen;
}

test("whoever listens while it happens misses nothing, and hears the words as they come", async () => {
  const service = await start({ steps: [{ text: "One two three." }] });
  const client = await service.client();
  const { id } = await client.create({});
  const stop = new AbortController();
  const seen: StreamEvent[] = [];
  const listening = (async () => {
    for await (const event of client.events(id, -1, stop.signal)) {
      seen.push(event);
      if (event.type === "record" && event.record.type === "turn.ended") break;
    }
  })();
  await client.send(id, { text: "go" });
  await listening;
  const numbers = seen.flatMap((event) => (event.type === "record" ? [event.record.n] : []));
  expect(numbers).toEqual(numbers.map((_, index) => index));
  expect(seen.some((event) => event.type === "live")).toBe(true);
  const words = seen.findIndex((event) => event.type === "live" && event.event.type === "item.delta");
  const whole = seen.findIndex(
    (event) => event.type === "record" && JSON.stringify(event.record).includes("One two three."),
  );
  expect(words).toBeLessThan(whole);
});

test("a listener that reads slowly gets everything on one connection, however large", async () => {
  const large = "word ".repeat(1_000_000);
  const service = await start({ steps: [{ text: large }] });
  const client = await service.client();
  const { id } = await client.create({});
  await client.send(id, { text: "go" });
  await untilStatus(client, id, "idle");
  const { records } = await client.records(id);
  const response = await fetch(`${service.url}/v1/sessions/${id}/events`, {
    headers: { authorization: `Bearer ${await service.token()}` },
  });
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.includes("turn.ended")) break;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(text.length).toBeGreaterThan(large.length);
  const numbers = [...text.matchAll(/^id: (\d+)$/gm)].map(([, n]) => Number(n));
  expect(numbers).toEqual(records.map(({ n }) => n));
});

test("a question waits without a process, is answered after a restart, and only as it was asked", async () => {
  const folder = newFolder();
  const steps = [{ calls: [{ name: "deploy", input: { text: "prod" } }] }, { text: "Deployed." }];
  const first = await startTestService({ steps, folder });
  const before = await first.client();
  const { id } = await before.create({});
  await before.send(id, { text: "deploy" });
  await untilStatus(before, id, "waiting");
  const [asked] = await before.approvals();
  expect(asked).toMatchObject({ session: { id, waitingFor: { tool: "deploy" } } });
  await first.close();

  const second = await start({ steps, folder });
  const client = await second.client();
  const { call, hash } = (await client.approvals())[0]!.request;
  const refused = async (callId: string, given: string) =>
    client.approve(id, callId, { answer: "once", hash: given }).then(
      () => 202,
      (error: ServiceError) => error.status,
    );
  expect(await refused(call.id, "0".repeat(64))).toBe(409);
  expect(await refused("nothing", hash)).toBe(404);
  expect(await refused(call.id, hash)).toBe(202);
  expect(await refused(call.id, hash)).toBe(409);
  await untilStatus(client, id, "idle");
  expect(second.ran).toEqual(["deploy prod"]);
  expect(await client.approvals()).toEqual([]);
});

test("a question can be answered though its process was killed before it noted anywhere but in the records that it waits", async () => {
  const folder = newFolder();
  const steps = [{ calls: [{ name: "deploy", input: { text: "prod" } }] }, { text: "Deployed." }];
  const first = await startTestService({ steps, folder });
  const before = await first.client();
  const { id } = await before.create({});
  await before.send(id, { text: "deploy" });
  await untilStatus(before, id, "waiting");
  await first.close();
  const store = createFileStore({ folder, ownTenant: "main" });
  await store.update(id, { status: "running", questions: [] });
  await store.close();

  const second = await start({ steps, folder });
  const client = await second.client();
  await untilStatus(client, id, "waiting");
  const { call, hash } = (await client.approvals())[0]!.request;
  await client.approve(id, call.id, { answer: "once", hash });
  await untilStatus(client, id, "idle");
  expect(second.ran).toEqual(["deploy prod"]);
});

test("a waiting turn is cancelled, and the session takes the next message", async () => {
  const service = await start({ steps: [{ calls: [{ name: "deploy" }] }, { text: "Something else." }] });
  const client = await service.client();
  const { id } = await client.create({});
  await client.send(id, { text: "deploy" });
  await untilStatus(client, id, "waiting");
  await client.cancel(id);
  await untilStatus(client, id, "idle");
  await client.send(id, { text: "and now?" });
  await expect
    .poll(async () => (await client.records(id)).records.filter(({ type }) => type === "turn.ended").length)
    .toBe(2);
  const ends = (await client.records(id)).records.filter(({ type }) => type === "turn.ended");
  expect(ends.map((record) => record["reason"])).toEqual(["interrupted", "done"]);
  expect(service.ran).toEqual([]);
});

test("SIGTERM's way: running calls end, the turn is left open, and the next start goes on with it", async () => {
  const folder = newFolder();
  const steps = [{ calls: [{ name: "slow", input: { text: "x" } }] }, { text: "Done." }];
  let go = () => {};
  const held = new Promise<void>((resolve) => (go = resolve));
  let running = () => {};
  const isRunning = new Promise<void>((resolve) => (running = resolve));
  const first = await startTestService({
    steps,
    folder,
    hold: async () => {
      running();
      await held;
    },
  });
  const { id } = await (await first.client()).create({});
  await (await first.client()).send(id, { text: "go" });
  await isRunning;
  const closing = first.close();
  go();
  await closing;
  expect(first.ran).toEqual(["slow x"]);
  const second = await start({ steps, folder });
  const client = await second.client();
  await untilStatus(client, id, "idle");
  const { records } = await client.records(id);
  expect(second.ran).toEqual([]);
  expect(records.at(-1)).toMatchObject({ type: "turn.ended", reason: "done", requests: 2 });
});

test("a message steers the running turn, and is taken once", async () => {
  let go = () => {};
  const held = new Promise<void>((resolve) => (go = resolve));
  const steps = [{ calls: [{ name: "slow" }] }, { text: "Steered." }];
  const service = await start({ steps, hold: () => held });
  const client = await service.client();
  const { id } = await client.create({});
  await client.send(id, { text: "go" });
  await untilStatus(client, id, "running");
  await client.send(id, { text: "the other way", mode: "steer" });
  await new Promise((resolve) => setTimeout(resolve, 200));
  go();
  await untilStatus(client, id, "idle");
  const { records } = await client.records(id);
  expect(records.filter((record) => JSON.stringify(record).includes("the other way"))).toHaveLength(1);
  expect(records.filter(({ type }) => type === "turn.started")).toHaveLength(1);
});

test("the one-time link lets one browser in; its cookie changes nothing without the header", async () => {
  const service = await start({ steps: [] });
  const link = service.link();
  const first = await fetch(link, { redirect: "manual" });
  expect(first.status).toBe(303);
  const cookie = first.headers.get("set-cookie")!;
  expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
  expect((await fetch(link, { redirect: "manual" })).status).toBe(403);
  const headers = { cookie: cookie.split(";")[0]! };
  expect((await fetch(`${service.url}/v1/me`, { headers })).status).toBe(200);
  const post = (more: Record<string, string>) =>
    fetch(`${service.url}/v1/sessions`, {
      method: "POST",
      body: "{}",
      headers: { ...headers, "content-type": "application/json", ...more },
    });
  expect((await post({})).status).toBe(403);
  expect((await post({ "x-callgate": "1", origin: "http://evil.example" })).status).toBe(403);
  expect((await post({ "x-callgate": "1", origin: service.url })).status).toBe(201);
});

test("a token that a person types lets the browser in until it is taken back; a used link leads a person to the page", async () => {
  const service = await start({ steps: [] });
  const token = await service.token();
  const enter = (headers: Record<string, string>) => fetch(`${service.url}/enter`, { method: "POST", headers });
  expect((await enter({ authorization: "Bearer cgs_wrong" })).status).toBe(401);
  const entered = await enter({ authorization: `Bearer ${token}` });
  expect([entered.status, entered.headers.get("set-cookie")]).toEqual([
    204,
    expect.stringMatching(/HttpOnly; SameSite=Strict/),
  ]);
  const headers = { cookie: entered.headers.get("set-cookie")!.split(";")[0]! };
  expect((await fetch(`${service.url}/v1/me`, { headers })).status).toBe(200);
  expect((await enter({ authorization: `Bearer ${token}`, origin: "http://evil.example" })).status).toBe(403);
  expect((await fetch(`${service.url}/enter`)).status).toBe(405);
  const used = await fetch(`${service.url}/?link=used`, { redirect: "manual", headers: { accept: "text/html" } });
  expect([used.status, used.headers.get("location"), used.headers.get("set-cookie")]).toEqual([303, "/", null]);
});

test("the door: another host name, no token, a body that is too large or no JSON, a wrong word", async () => {
  const service = await start({ steps: [], http: { maxBodyBytes: 1000 } });
  const token = await service.token();
  const named = await new Promise<number>((resolve, reject) => {
    const { port } = new URL(service.url);
    request(
      { port, path: "/v1/me", headers: { host: "evil.example", authorization: `Bearer ${token}` } },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    )
      .on("error", reject)
      .end();
  });
  expect(named).toBe(403);
  const ask = async (method: string, path: string, body?: string, more: Record<string, string> = {}) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...more };
    const response = await fetch(`${service.url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    if (response.status >= 400) {
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect(JSON.parse(text)).toMatchObject({ status: response.status, title: expect.any(String) as string });
    }
    return response.status;
  };
  expect(await ask("GET", "/v1/me", undefined, { authorization: "Bearer nothing" })).toBe(401);
  expect(await ask("POST", "/v1/sessions", JSON.stringify({ title: "x".repeat(2000) }))).toBe(413);
  expect(await ask("POST", "/v1/sessions", "{")).toBe(400);
  expect(await ask("POST", "/v1/sessions", JSON.stringify({ tilte: "x" }))).toBe(400);
  expect(await ask("POST", "/v1/sessions", "{}", { "content-type": "text/plain" })).toBe(415);
  expect(await ask("PUT", "/v1/sessions", "{}")).toBe(405);
  expect(await ask("GET", "/v1/nothing")).toBe(404);
  expect(await ask("GET", "/v1/sessions?statsu=idle")).toBe(400);
  expect(await ask("GET", "/v1/sessions/%E0%A4%A")).toBe(404);
  expect(await ask("GET", "/../../etc/passwd.txt")).toBe(404);
  expect(await ask("GET", "/healthz")).toBe(200);
  expect(await ask("GET", "/readyz")).toBe(200);
  expect(await ask("GET", "/metrics")).toBe(200);
});

test("an Idempotency-Key stands for one request: the same again has its result, another is refused", async () => {
  const folder = newFolder();
  let service = await startTestService({ steps: [], folder, isApi: true });
  const ask = async (path: string, body: unknown) => {
    const token = await service.token();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": "k" };
    const response = await fetch(`${service.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, type: response.headers.get("content-type"), json: await response.json() };
  };
  const refused = {
    status: 422,
    type: expect.stringContaining("application/problem+json"),
    json: { type: "urn:callgate:key-reused", status: 422, detail: expect.stringContaining("used for another request") },
  };
  const made = await ask("/v1/sessions", { title: "a", model: "m" });
  const messages = `/v1/sessions/${(made.json as { id: string }).id}/messages`;
  const sent = await ask(messages, { text: "hello" });
  expect([made.status, sent.status]).toEqual([201, 202]);
  await service.close();
  service = await start({ steps: [], folder, isApi: true });
  expect(await ask("/v1/sessions", { model: "m", title: "a" })).toEqual(made);
  expect(await ask("/v1/sessions", { title: "b", model: "m" })).toMatchObject(refused);
  expect(await ask(messages, { text: "hello" })).toEqual(sent);
  expect(await ask(messages, { text: "another" })).toMatchObject(refused);
  expect(await service.store.mail((made.json as { id: string }).id)).toHaveLength(1);
});

test("a repeated request gets its first answer also where a new one would be refused by now", async () => {
  let limits: Partial<TenantLimits> = {};
  let accepts = true;
  const service = await start({
    steps: [{ calls: [{ name: "deploy" }] }, { text: "ok" }],
    limits: () => limits,
    checkSettings: async (_tenant, settings) => {
      if (!accepts) throw new Problem(400, "invalid", "not any more");
      return { cwd: "/", settings };
    },
  });
  const client = await service.client();
  const made = await client.create({ title: "a" }, "k");
  await client.send(made.id, { text: "deploy" }, "k");
  await untilStatus(client, made.id, "waiting");
  const { call, hash } = (await client.approvals())[0]!.request;
  const answer = (key?: string, word: "once" | "no" = "once") =>
    client.approve(made.id, call.id, { answer: word, hash }, key).then(
      () => 202,
      ({ status }: ServiceError) => status,
    );
  expect(await answer("a")).toBe(202);
  expect(await answer("a")).toBe(202);
  await untilEnded(client, made.id);
  await untilStatus(client, made.id, "idle");
  // Only the very same request is the same answer.
  expect([await answer("a"), await answer("b"), await answer("a", "no"), await answer()]).toEqual([202, 409, 409, 409]);
  limits = { sessions: 1, messagesPerMinute: 0, callsPerDay: 1 };
  accepts = false;
  await service.store.update(made.id, { status: "ended" });
  expect((await client.create({ title: "a" }, "k")).id).toBe(made.id);
  await client.send(made.id, { text: "deploy" }, "k");
  const refused = async (work: Promise<unknown>) => work.catch(({ status }: ServiceError) => status);
  expect(await refused(client.create({ title: "a" }, "new"))).toBe(429);
  expect(await refused(client.create({ title: "b" }, "k"))).toBe(422);
  expect(await refused(client.send(made.id, { text: "deploy" }, "new"))).toBe(429);
  expect(service.ran).toEqual(["deploy "]);
});

test("a repeated wish to take back or to end is the same one, and not another", async () => {
  const service = await start({ steps: [], isApi: true });
  const client = await service.client();
  const { id } = await client.create({});
  await client.cancel(id, "k");
  await client.cancel(id, "k");
  const undone = [client.undo(id, "k"), client.undo(id, "k")];
  await expect.poll(async () => (await service.store.mail(id)).map(({ kind }) => kind)).toEqual(["cancel", "undo"]);
  const [, undo] = await service.store.mail(id);
  await service.store.append(id, 0, [{ type: "undone", mail: undo!.id, undone: ["a"], conflicts: [] }]);
  expect(await Promise.all(undone)).toEqual(Array.from({ length: 2 }, () => ({ undone: ["a"], conflicts: [] })));
  // Also while the next turn runs, when a new one would be refused.
  await service.store.update(id, { status: "running" });
  expect(await client.undo(id, "k")).toEqual({ undone: ["a"], conflicts: [] });
  await expect(client.undo(id, "new")).rejects.toMatchObject({ status: 409 });
});

test("rates, quotas and budgets stop a tenant and no other, say when to try again, and are noted", async () => {
  const folder = newFolder();
  const limits = openLimitFile(join(folder, "serve", "limits.json"));
  await limits.set("small", { sessions: 1, messagesPerMinute: 4, callsPerDay: 1 });
  const service = await start({
    steps: [{ calls: [{ name: "look" }] }, { text: "ok" }, { text: "never" }],
    folder,
    limits: limits.get,
  });
  const small = await service.client("small");
  const refusal = (promise: Promise<unknown>) =>
    promise.then(
      () => ({ status: 0, retryAfterMs: 0 }),
      ({ status, retryAfterMs }: ServiceError) => ({ status, retryAfterMs: retryAfterMs ?? 0 }),
    );
  const { id } = await small.create({});
  expect(await refusal(small.create({}))).toEqual({ status: 429, retryAfterMs: 60_000 });
  await small.send(id, { text: "one" });
  await untilStatus(small, id, "idle");
  await expect.poll(async () => (await small.limits()).used.calls).toBe(1);
  const spent = await refusal(small.send(id, { text: "two" }));
  expect(spent.status).toBe(429);
  expect(spent.retryAfterMs).toBeLessThanOrEqual(86_400_000);
  // A change holds at once, in both directions.
  await limits.set("small", { sessions: 2, messagesPerMinute: 4, callsPerDay: Infinity });
  expect((await refusal(small.create({}))).status).toBe(0);
  await small.send(id, { text: "three" });
  await small.send(id, { text: "four" });
  const tooFast = await refusal(small.send(id, { text: "five" }));
  expect(tooFast.status).toBe(429);
  expect(tooFast.retryAfterMs).toBeGreaterThan(0);
  expect(tooFast.retryAfterMs).toBeLessThanOrEqual(16_000);
  const other = await service.client("other");
  for (let n = 0; n < 3; n++) expect((await refusal(other.create({}))).status).toBe(0);
  expect(await small.limits()).toMatchObject({
    limits: { sessions: 2, callsPerDay: null, running: 50 },
    used: { sessions: 2, calls: 1 },
  });
  const audit = readFileSync(join(folder, "serve", "tenants", "small", "audit.jsonl"), "utf8");
  const noted = [...audit.matchAll(/limit\\":\\"(\w+)/g)].map(([, kind]) => kind);
  expect(noted).toEqual(["quota", "budget", "rate"]);
});

test("a turn that spends the last of the day's budget is ended, and what was queued behind it comes to nothing", async () => {
  const steps = Array.from({ length: 50 }, () => ({ calls: [{ name: "slow" }] }));
  const service = await start({
    steps,
    limits: () => ({ callsPerDay: 3 }),
    hold: () => new Promise((resolve) => setTimeout(resolve, 100)),
  });
  const client = await service.client();
  const { id } = await client.create({});
  await client.send(id, { text: "go" });
  await client.send(id, { text: "and more" });
  expect(await untilEnded(client, id)).toEqual(["interrupted"]);
  await expect.poll(async () => (await client.records(id)).records.at(-1)).toMatchObject({ type: "mail.dropped" });
  expect(service.ran.length).toBeLessThan(20);
});

test("limits that are none are told when they are read", async () => {
  const path = join(newFolder(), "limits.json");
  writeFileSync(path, JSON.stringify({ a: { mesagesPerMinute: 3 } }));
  expect(() => openLimitFile(path).get("a")).toThrow("did you mean 'messagesPerMinute'");
  writeFileSync(path, JSON.stringify({ a: { running: "three" } }));
  expect(() => openLimitFile(path).get("a")).toThrow("'running' is no number");
});

test("a session that cannot be opened says so, and the service goes on", async () => {
  const errors: unknown[] = [];
  const service = await start({
    steps: [],
    onError: (error) => errors.push(error),
    checkSettings: async (_tenant, settings) => ({ cwd: "/nowhere", settings }),
    open: async () => {
      throw new Error("no model here");
    },
  } as TestServiceOptions);
  const client = await service.client();
  const { id } = await client.create({});
  await client.send(id, { text: "go" });
  await expect.poll(async () => JSON.stringify((await client.records(id)).records)).toContain("no model here");
  await untilStatus(client, id, "idle");
  expect(errors).toHaveLength(1);
});

test("a session that was taken up again and again without getting anywhere is put aside", async () => {
  const service = await start({ steps: [{ text: "Done." }] });
  const client = await service.client();
  const { id } = await client.create({});
  await service.store.update(id, { status: "running", takings: 5 });
  await service.store.post(id, { kind: "cancel", body: {} });
  await client.send(id, { text: "go" });
  await untilStatus(client, id, "faulty");
  await expect(client.send(id, { text: "again" })).rejects.toMatchObject({ status: 409 });
  expect((await client.records(id)).records).toEqual([]);
});

test("conversations that the gateway recorded beside the service can be looked at, and no more", async () => {
  const folder = newFolder();
  const id = "20261116-120000-abcdef";
  const journal = openJournal(sessionPath(folder, id));
  journal.append({ type: "session.started", session_id: id, cwd: "", model: "m", client: "codex" });
  const content = [{ type: "text", text: "Mend the test." }];
  journal.append({ type: "item.added", item: { type: "message", role: "user", content } });
  journal.close();
  const service = await start({ steps: [], folder });
  const client = await service.client();
  expect((await client.sessions()).sessions).toMatchObject([{ id, kind: "gateway", title: "Mend the test." }]);
  expect((await client.records(id)).records).toHaveLength(2);
  await expect(client.send(id, { text: "more" })).rejects.toMatchObject({ status: 409 });
  expect((await (await service.client("b")).sessions()).sessions).toEqual([]);
});

test("a turn of a session is a span of its tenant's, with its requests below it", async () => {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const trace = Object.assign(Object.create(otel.trace) as object, {
    getTracer: (name: string) => tracers.getTracer(name),
  });
  const telemetry = await createTelemetry({ api: { ...otel, trace } });
  const service = await start({ steps: [{ calls: [{ name: "look" }] }, { text: "Done." }], telemetry: telemetry! });
  const client = await service.client("team");
  const { id } = await client.create({});
  await client.send(id, { text: "go" });
  await untilEnded(client, id);
  await expect.poll(() => exporter.getFinishedSpans().map(({ name }) => name)).toContain("invoke_agent team");
  const turn = exporter.getFinishedSpans().find(({ name }) => name === "invoke_agent team");
  expect(turn?.attributes).toMatchObject({ "gen_ai.conversation.id": id, "callgate.turn.end": "done" });
  expect(exporter.getFinishedSpans().filter(({ name }) => name.startsWith("chat"))).toHaveLength(2);
});

test("the page has a strict policy, and its absence is told", async () => {
  const service = await start({ steps: [] });
  const page = await fetch(`${service.url}/`);
  expect(page.status).toBe(200);
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(page.headers.get("content-security-policy")).not.toContain("unsafe");
});

test("a compressed file of the page is sent as it is to who takes it, and plain to everyone else", async () => {
  const folder = newFolder();
  const text = "export const a = 1;\n".repeat(1000);
  writeFileSync(join(folder, "a.js.br"), brotliCompressSync(text));
  writeFileSync(join(folder, "plain.css"), "a{}");
  const service = await start({ steps: [], http: { page: folder } });
  const ask = async (path: string, accepted: string) => {
    const response = await new Promise<IncomingMessage>((resolve) =>
      get(`${service.url}${path}`, { headers: { "accept-encoding": accepted } }, resolve),
    );
    const { statusCode: status, headers } = response;
    const body = Buffer.concat(await response.toArray());
    return { status, encoding: headers["content-encoding"] ?? "none", type: headers["content-type"], body };
  };
  const script = { status: 200, type: "text/javascript; charset=utf-8" };
  for (const accepted of ["gzip, br", "br;q=0.5", "BR"]) {
    const { body, ...rest } = await ask("/a.js", accepted);
    expect({ accepted, ...rest }).toEqual({ accepted, ...script, encoding: "br" });
    expect(brotliDecompressSync(body).toString()).toBe(text);
  }
  for (const accepted of ["", "gzip", "br;q=0", "gzip, br; q=0.0, deflate", "brotli"]) {
    const { body, ...rest } = await ask("/a.js", accepted);
    expect({ accepted, ...rest }).toEqual({ accepted, ...script, encoding: "none" });
    expect(body.toString()).toBe(text);
  }
  expect((await ask("/plain.css", "br")).body.toString()).toBe("a{}");
  expect((await ask("/b.js", "br")).status).toBe(404);
});
