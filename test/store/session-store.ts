/** The laws of a session store, for every store there is. */
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  Fenced,
  KeyReused,
  type SessionChange,
  type SessionStatus,
  type SessionStore,
  type StoreChange,
  type StoredSession,
} from "../../src/store/session-store.ts";

let made = 0;

export function sessionStoreLaws(name: string, open: () => Promise<SessionStore>): void {
  describe(name, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });
    afterAll(() => store.close());
    const create = async (tenant = "main", key?: string) => {
      const id = `20261116-000000-${String(++made).padStart(6, "0")}`;
      const given = { id, tenant, title: `session ${made}`, model: "m", cwd: "/w", settings: {} };
      return (await store.create(given, key)).session;
    };

    test("records come back in order, numbered from 0, and none is left out", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 6 }), async (sizes) => {
          const { id } = await create();
          let head = 0;
          for (const size of sizes) {
            await store.append(
              id,
              head,
              Array.from({ length: size }, (_, index) => ({ type: "x", value: head + index, text: "ü\n\u0001" })),
            );
            head += size;
          }
          const records = await store.read(id, -1);
          expect(records.map(({ n }) => n)).toEqual(Array.from({ length: head }, (_, index) => index));
          expect(records.map((record) => record["value"])).toEqual(records.map(({ n }) => n));
          const after = Math.floor(head / 2);
          expect((await store.read(id, after, 2)).map(({ n }) => n)).toEqual(
            records.slice(after + 1, after + 3).map(({ n }) => n),
          );
        }),
        { numRuns: 10 },
      );
    });

    test("an append at the wrong number is fenced and changes nothing", async () => {
      const { id } = await create();
      await store.append(id, 0, [{ type: "a" }, { type: "b" }]);
      for (const at of [0, 1, 3, 7]) await expect(store.append(id, at, [{ type: "c" }])).rejects.toThrow(Fenced);
      expect((await store.read(id, -1)).map(({ type }) => type)).toEqual(["a", "b"]);
      await store.append(id, 2, [{ type: "c" }]);
      expect(await store.read(id, -1)).toHaveLength(3);
    });

    test("sessions that write at the same moment write what they would alone, and the fault of one is not another's", async () => {
      const ids = await Promise.all(Array.from({ length: 30 }, async () => (await create()).id));
      const mails = await Promise.all(
        ids.map(async (id) => (await store.post(id, { kind: "message", body: {} })).mail.id),
      );
      const write = (at: (place: number) => number, types: readonly string[]) =>
        Promise.all(
          ids.map((id, place) =>
            store
              .append(
                id,
                at(place),
                types.map((type, n) => ({ type, place, ...(n === 0 ? { mail: mails[place]! } : {}) })),
              )
              .then(
                () => "written",
                (error: unknown) => (error instanceof Fenced ? "fenced" : "failed"),
              ),
          ),
        );
      expect(new Set(await write(() => 0, ["a", "b", "c"]))).toEqual(new Set(["written"]));
      // One is elsewhere, and one has a number that no journal has.
      const second = await write((place) => (place === 7 ? 1 : place === 9 ? 2 ** 40 : 3), ["d", "e"]);
      expect(second.flatMap((word, place) => (word === "written" ? [] : [`${place} ${word}`]))).toEqual([
        "7 fenced",
        expect.stringMatching(/^9 (?:fenced|failed)$/),
      ]);
      for (const [place, id] of ids.entries()) {
        const records = await store.read(id, -1);
        const types = place === 7 || place === 9 ? ["a", "b", "c"] : ["a", "b", "c", "d", "e"];
        expect(records.map(({ n, type, ...record }) => [n, type, record["place"]])).toEqual(
          types.map((type, n) => [n, type, place]),
        );
        expect(await store.mail(id)).toEqual([]);
      }
      // Two appends of one session follow each other.
      const [id] = ids;
      await Promise.all([store.append(id!, 5, [{ type: "f" }]), store.append(id!, 6, [{ type: "g" }])]);
      expect((await store.read(id!, 4)).map(({ type }) => type)).toEqual(["f", "g"]);
    });

    test("mail is kept until a record says that it was taken, and taken once", async () => {
      const { id } = await create();
      const first = await store.post(id, { kind: "message", body: { content: "one" }, key: "k" });
      const again = await store.post(id, { kind: "message", body: { content: "one" }, key: "k" });
      expect([first.isNew, again.isNew, again.mail.id]).toEqual([true, false, first.mail.id]);
      await store.post(id, { kind: "cancel", body: {} });
      expect((await store.mail(id)).map(({ kind }) => kind)).toEqual(["message", "cancel"]);
      await store.append(id, 0, [{ type: "turn.started", mail: first.mail.id }]);
      expect((await store.mail(id)).map(({ kind }) => kind)).toEqual(["cancel"]);
      expect((await store.post(id, { kind: "message", body: {}, key: "k" })).isNew).toBe(false);
    });

    test("one has a session at a time, and gives it back", async () => {
      const { id } = await create();
      const release = await store.take(id);
      expect(release).toBeDefined();
      expect(await store.take(id)).toBeUndefined();
      await release?.();
      const second = await store.take(id);
      expect(second).toBeDefined();
      await second?.();
    });

    test("the same key makes the same session, for its tenant alone", async () => {
      const a = await create("a", "same");
      expect((await create("a", "same")).id).toBe(a.id);
      expect((await create("b", "same")).id).not.toBe(a.id);
    });

    test("a key that came with one request is refused with another, and changes nothing", async () => {
      const given = { tenant: "keys", title: "", model: "m", cwd: "/w", settings: {} };
      const make = (request?: string) => store.create({ ...given, id: `20261116-000000-k${++made}` }, "k", request);
      const { session } = await make("one");
      expect(await make("one")).toMatchObject({ isNew: false, session: { id: session.id } });
      await expect(make("other")).rejects.toThrow(KeyReused);
      expect((await store.list({ tenant: "keys", limit: 9 })).sessions).toHaveLength(1);
      const send = (request?: string) =>
        store.post(session.id, { kind: "message", body: {}, key: "k", ...(request && { request }) });
      const { mail } = await send("one");
      expect(await send("one")).toMatchObject({ isNew: false, mail: { id: mail.id } });
      await expect(send("other")).rejects.toThrow(KeyReused);
      await expect(store.forTenant("keys").create({ ...given, id: "x" }, "k", "other")).rejects.toThrow(KeyReused);
      expect(await store.mail(session.id)).toHaveLength(1);
      for (const one of [store, store.forTenant("keys")]) {
        expect(await one.created("keys", "k", "one")).toEqual(session);
        expect(await one.created("keys", "other")).toBeUndefined();
        await expect(one.created("keys", "k", "other")).rejects.toThrow(KeyReused);
        expect(await one.posted(session.id, "k", "one")).toMatchObject(mail);
        expect(await one.posted(session.id, "other")).toBeUndefined();
        await expect(one.posted(session.id, "k", "other")).rejects.toThrow(KeyReused);
      }
      expect(await store.created("b", "k")).toBeUndefined();
    });

    test("lists show a tenant its own, the last changed first, page by page", async () => {
      const tenant = `t${++made}`;
      const ids: string[] = [];
      for (let count = 0; count < 5; count++) ids.push((await create(tenant)).id);
      await create("other");
      await store.update(ids[1]!, { status: "waiting" });
      const all = await store.list({ tenant, limit: 100 });
      expect(all.sessions.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      expect((await store.list({ tenant, limit: 9, status: "waiting" })).sessions.map(({ id }) => id)).toEqual([
        ids[1],
      ]);
      const first = await store.list({ tenant, limit: 2 });
      const rest = await store.list({ tenant, limit: 100, before: first.sessions.at(-1)!.id });
      expect(first.more).toBe(true);
      expect([...first.sessions, ...rest.sessions].map(({ id }) => id)).toEqual(all.sessions.map(({ id }) => id));
    });

    test("whoever watches hears of records, mail and changes", async () => {
      const { id, tenant } = await create();
      const seen: StoreChange[] = [];
      const stop = store.watch((change) => {
        if (change.id === id) seen.push(change);
      });
      await store.append(id, 0, [{ type: "a" }]);
      await store.post(id, { kind: "cancel", body: {} });
      await store.update(id, { status: "running" });
      store.publish(id, tenant, { type: "item.delta" });
      await expect
        .poll(() => [...new Set(seen.map(({ type }) => type))].toSorted())
        .toEqual(["live", "mail", "records", "session"]);
      stop();
    });

    test("whoever watches one session hears of no other, and of its records as they stand", async () => {
      const [one, other] = [await create(), await create()];
      const seen: StoreChange[] = [];
      const stop = store.watch((change) => void seen.push(change), one.id);
      await store.append(other.id, 0, [{ type: "a" }]);
      await store.append(one.id, 0, [{ type: "b" }, { type: "c", text: "é" }]);
      await expect.poll(() => seen.some(({ type }) => type === "records")).toBe(true);
      expect([...new Set(seen.map(({ id }) => id))]).toEqual([one.id]);
      const told = seen.find((change) => change.type === "records");
      expect(told).toMatchObject({ head: 2, records: await store.read(one.id, -1) });
      stop();
      const before = seen.length;
      await store.append(one.id, 2, [{ type: "d" }]);
      expect(seen).toHaveLength(before);
    });

    test("unfinished are those with mail and those that were running", async () => {
      const quiet = await create();
      const withMail = await create();
      const running = await create();
      await store.post(withMail.id, { kind: "message", body: {} });
      await store.update(running.id, { status: "running" });
      const ids = (await store.unfinished()).map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining([withMail.id, running.id]));
      expect(ids).not.toContain(quiet.id);
    });

    test("a change that is bound to a record's number is fenced where another was written", async () => {
      const { id } = await create();
      await store.append(id, 0, [{ type: "a" }]);
      await store.update(id, { status: "running" }, 1);
      await expect(store.update(id, { status: "idle" }, 0)).rejects.toThrow(Fenced);
      expect((await store.get(id))?.status).toBe("running");
    });

    test("takings are counted until a record shows that somebody got somewhere", async () => {
      const { id } = await create();
      await store.update(id, { takings: 3 });
      await store.append(id, 0, [{ type: "session.started" }, { type: "request.sent" }]);
      expect((await store.get(id))?.takings).toBe(3);
      await store.append(id, 2, [{ type: "item.added" }]);
      expect((await store.get(id))?.takings).toBe(0);
    });

    test("a message to a waiting session is not yet work; an answer is", async () => {
      const { id } = await create();
      await store.update(id, { status: "waiting" });
      await store.post(id, { kind: "message", body: {} });
      expect((await store.unfinished()).map((one) => one.id)).not.toContain(id);
      await store.post(id, { kind: "approval", body: {} });
      expect((await store.unfinished()).map((one) => one.id)).toContain(id);
    });

    test("new mail wakes, the same mail again does not", async () => {
      const { id } = await create();
      let wakes = 0;
      const wake = async () => void wakes++;
      await store.post(id, { kind: "message", body: {}, key: "k" }, wake);
      await store.post(id, { kind: "message", body: {}, key: "k" }, wake);
      expect(wakes).toBe(1);
    });

    test("what one tenant may use has nothing of another's", async () => {
      const tenant = `own${++made}`;
      const { id } = await create(tenant);
      await store.append(id, 0, [{ type: "a" }]);
      const own = store.forTenant(tenant);
      const other = store.forTenant("stranger");
      expect((await own.get(id))?.id).toBe(id);
      expect(await own.read(id, -1)).toHaveLength(1);
      expect(await own.counts(tenant)).toEqual({ idle: 1 });
      expect(await other.get(id)).toBeUndefined();
      expect(await other.read(id, -1)).toEqual([]);
      const heard: StoreChange[] = [];
      const stop = other.watch((change) => heard.push(change));
      for (const forbidden of [
        () => other.update(id, { title: "taken" }),
        () => other.append(id, 1, [{ type: "b" }]),
        () => other.post(id, { kind: "cancel", body: {} }),
        () => other.remove(id),
      ])
        await expect(forbidden()).rejects.toThrow();
      stop();
      expect(heard).toEqual([]);
      expect(await store.read(id, -1)).toHaveLength(1);
      expect(await store.mail(id)).toEqual([]);
      expect((await store.get(id))?.title).not.toBe("taken");
    });

    test("any text comes back as it was, the hostile kinds too", async () => {
      const { id } = await create();
      const texts = ["\u0000", "\ud800", "'; drop table x; --", "\\u0000", 'é\n\t"', "\u2028"];
      await store.append(id, 0, [{ type: "a", texts }]);
      expect((await store.read(id, -1))[0]?.["texts"]).toEqual(texts);
    });

    test("lists find words of titles and ids in any case, in the order of the last change", async () => {
      const tenant = `words${++made}`;
      const make = (id: string, title: string) =>
        store.create({ id: `${id}-${tenant}`, tenant, title, model: "m", cwd: "/w", settings: {} });
      await make("20260101-aaa", "Mend the BOAT");
      await make("20260102-bbb", "Paint the boat's deck");
      await make("20260103-ccc", "100% 'of_it' \\ done");
      const found = async (q: string, status?: SessionStatus) =>
        (await store.list({ tenant, q, limit: 9, ...(status && { status }) })).sessions
          .map(({ id }) => id.slice(9, 12))
          .toSorted();
      expect(await found("boat")).toEqual(["aaa", "bbb"]);
      expect(await found("Boat'S")).toEqual(["bbb"]);
      expect(await found("20260103")).toEqual(["ccc"]);
      for (const words of ["100%", "of_it", "\\", "'"]) expect(await found(words), words).toContain("ccc");
      expect(await found("%")).toEqual(["ccc"]);
      expect(await found("nothing like it")).toEqual([]);
      await store.update(`20260101-aaa-${tenant}`, { status: "running" });
      expect(await found("boat", "running")).toEqual(["aaa"]);
      await sleep(3);
      await store.update(`20260102-bbb-${tenant}`, { title: "now the newest" });
      const all = await store.list({ tenant, limit: 2 });
      expect(all.sessions[0]).toMatchObject({ title: "now the newest" });
      expect([all.sessions.length, all.more]).toEqual([2, true]);
      expect((await store.list({ tenant, limit: 3 })).more).toBe(false);
      const whole = (await store.list({ tenant, limit: 9 })).sessions;
      expect(whole).toEqual(whole.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1)));
    });

    test("counts say how many sessions have which status, for one tenant alone", async () => {
      const tenant = `counts${++made}`;
      expect(await store.counts(tenant)).toEqual({});
      const ids = [];
      for (let n = 0; n < 4; n++) ids.push((await create(tenant)).id);
      await store.update(ids[0]!, { status: "faulty" });
      await store.update(ids[1]!, { status: "ended" });
      await store.update(ids[2]!, { status: "ended" });
      expect(await store.counts(tenant)).toEqual({ idle: 1, faulty: 1, ended: 2 });
    });

    test("a change changes what it names, and leaves the rest as it was", async () => {
      const question = { callId: "c", tool: "shell", reason: "it writes", hash: "h", at: 5, n: 3 };
      const changes: readonly SessionChange[] = [
        { title: "another" },
        { status: "waiting" },
        { model: "other" },
        { cwd: "/elsewhere" },
        { questions: [question] },
        { usage: { input: 3, output: 4, costUsd: 0.5 } },
        { takings: 2 },
        { questions: [] },
        { title: "", takings: 0 },
      ];
      const made = await create();
      let expected: StoredSession = made;
      for (const change of changes) {
        await store.update(made.id, change);
        expected = { ...expected, ...change };
        const { updatedAt, ...rest } = (await store.get(made.id))!;
        expect(rest).toEqual((({ updatedAt: _at, ...left }) => left)(expected));
        expect(updatedAt).toBeGreaterThanOrEqual(made.updatedAt);
      }
    });

    test("what was made is what was given, and is told as new once", async () => {
      const given = {
        id: `20261116-000000-n${++made}`,
        tenant: "n",
        title: "é",
        model: "m",
        cwd: "/w",
        settings: { a: [1, { b: null }], text: '"' },
      };
      const first = await store.create(given, `key${made}`);
      expect(first).toMatchObject({ isNew: true, session: { ...given, status: "idle", questions: [], takings: 0 } });
      expect(first.session.usage).toBeUndefined();
      expect(await store.create({ ...given, id: "other" }, `key${made}`)).toEqual({ ...first, isNew: false });
      expect(await store.get(given.id)).toEqual(first.session);
      await expect(store.create(given)).rejects.toThrow();
      expect(await store.get("other")).toBeUndefined();
    });

    test("a session that is not there is told so, and nothing comes of it", async () => {
      for (const asked of [
        () => store.update("nobody", { title: "x" }),
        () => store.append("nobody", 0, [{ type: "x" }]),
        () => store.post("nobody", { kind: "message", body: {} }),
        () => store.post("nobody", { kind: "message", body: {}, key: "k" }),
        () => store.remove("nobody"),
      ])
        await expect(asked()).rejects.toThrow("nobody");
      await expect(store.update("nobody", { title: "x" }, 0)).rejects.toThrow();
      expect(await store.get("nobody")).toBeUndefined();
      expect(await store.read("nobody", -1)).toEqual([]);
    });

    test("mail of every kind keeps its order, body and time, and a record takes exactly the one it names", async () => {
      const { id } = await create();
      const other = await create();
      const kinds = ["message", "approval", "cancel", "undo"] as const;
      const sent = [];
      for (const kind of kinds) sent.push((await store.post(id, { kind, body: { kind, deep: [{ x: "ü" }] } })).mail);
      await store.post(other.id, { kind: "message", body: {} });
      expect(await store.mail(id)).toEqual(sent);
      expect(sent.map(({ kind, body }) => [kind, body["kind"]])).toEqual(kinds.map((kind) => [kind, kind]));
      await store.append(id, 0, [{ type: "a", mail: sent[2]!.id }, { type: "b" }, { type: "c", mail: sent[0]!.id }]);
      expect((await store.mail(id)).map(({ kind }) => kind)).toEqual(["approval", "undo"]);
      expect(await store.mail(other.id)).toHaveLength(1);
      await store.append(id, 3, [{ type: "d", mail: "not a number" }]);
      expect(await store.mail(id)).toHaveLength(2);
    });

    test("a session that ended or broke is not unfinished, whatever was sent to it", async () => {
      const ids = [];
      for (const status of ["ended", "faulty", "idle", "waiting"] as const) {
        const { id } = await create();
        await store.post(id, { kind: "cancel", body: {} });
        await store.update(id, { status });
        ids.push(id);
      }
      const unfinished = new Set((await store.unfinished()).map(({ id }) => id));
      expect(ids.map((id) => unfinished.has(id))).toEqual([false, false, true, true]);
    });

    test("of any number who want a session at once, one gets it", async () => {
      const { id } = await create();
      for (let round = 0; round < 3; round++) {
        const taken = await Promise.all(Array.from({ length: 6 }, () => store.take(id)));
        const got = taken.filter((release) => release !== undefined);
        expect(got).toHaveLength(1);
        await got[0]!();
        await got[0]!(); // giving it back twice gives nobody else's away
      }
    });

    test("any number who append at once leave one order, and every refused one is told", async () => {
      const { id } = await create();
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, (_, writer) =>
          store.append(id, 0, [
            { type: "first", writer },
            { type: "second", writer },
          ]),
        ),
      );
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const outcome of outcomes) if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(Fenced);
      const records = await store.read(id, -1);
      expect(records.map(({ type }) => type)).toEqual(["first", "second"]);
      expect(records[0]!["writer"]).toBe(records[1]!["writer"]);
    });

    test("a record's own number and time never stand in for the store's", async () => {
      const { id } = await create();
      const seen: StoreChange[] = [];
      const stop = store.watch((change) => void seen.push(change), id);
      await store.append(id, 0, [
        { type: "x", n: 7, at: 7 },
        { type: "y", n: 0 },
      ]);
      const records = await store.read(id, -1);
      expect(records.map(({ n }) => n)).toEqual([0, 1]);
      expect(records[0]!.at).toBeGreaterThan(1_700_000_000_000);
      expect(seen.find(({ type }) => type === "records")).toMatchObject({ records });
      stop();
    });

    test("nothing appended is nothing written and nothing told", async () => {
      const { id } = await create();
      await store.append(id, 0, []);
      expect(await store.read(id, -1)).toEqual([]);
      await store.append(id, 0, [{ type: "x" }]);
      expect(await store.read(id, -1)).toHaveLength(1);
    });

    test("whoever is confined to a tenant reaches nothing else by any of its ways", async () => {
      const [own, tenant] = [`mine${++made}`, `theirs${made}`];
      const { id } = await create(tenant);
      await store.post(id, { kind: "message", body: {} });
      await store.update(id, { status: "running" });
      const mine = store.forTenant(own);
      const refusedOr = async <T>(asked: () => Promise<T>, nothing: T) =>
        expect(await asked().catch(() => nothing)).toEqual(nothing);
      const given = { id: `20261116-000000-x${made}`, tenant, title: "", model: "m", cwd: "/w", settings: {} };
      await expect((async () => mine.create(given))()).rejects.toThrow();
      await refusedOr(async () => (await mine.list({ tenant, limit: 9 })).sessions, []);
      await refusedOr(async () => mine.counts(tenant), {});
      await refusedOr(async () => mine.mail(id), []);
      await refusedOr(async () => mine.take(id), undefined);
      await refusedOr(async () => (await mine.unfinished()).filter((one) => one.tenant !== own), []);
      const heard: StoreChange[] = [];
      const stop = store.watch((change) => void heard.push(change), id);
      expect(() => mine.publish(id, tenant, { type: "item.delta", delta: "forged" })).toThrow();
      expect(() => mine.forTenant(tenant)).toThrow();
      stop();
      expect(heard).toEqual([]);
      const free = await store.take(id);
      expect(free).toBeDefined();
      await free?.();
      const { session } = await mine.create({ ...given, tenant: own });
      expect(await mine.get(session.id)).toEqual(session);
      expect((await mine.list({ tenant: own, limit: 9 })).sessions).toEqual([session]);
      const mail = await mine.post(session.id, { kind: "message", body: {} });
      expect(await mine.mail(session.id)).toEqual([mail.mail]);
      expect((await mine.unfinished()).map((one) => one.id)).toEqual([session.id]);
      await mine.append(session.id, 0, [{ type: "x", mail: mail.mail.id }]);
      await mine.update(session.id, { title: "mine" }, 1);
      expect((await mine.get(session.id))?.title).toBe("mine");
      expect(await mine.mail(session.id)).toEqual([]);
      await mine.close(); // the whole store stays open
      await mine.remove(session.id);
      expect(await store.get(session.id)).toBeUndefined();
      expect(await store.get(id)).toBeDefined();
    });

    test("whoever watches is told of a removal, and one who stopped of nothing", async () => {
      const { id, tenant } = await create();
      const [all, one, stopped]: StoreChange[][] = [[], [], []];
      const stops = [
        store.watch((change) => void all!.push(change)),
        store.watch((change) => void one!.push(change), id),
      ];
      const stop = store.watch((change) => void stopped!.push(change), id);
      stop();
      stop();
      await store.post(id, { kind: "message", body: {} });
      await store.remove(id);
      for (const heard of [all, one]) expect(heard).toContainEqual({ type: "removed", id, tenant });
      expect(stopped).toEqual([]);
      for (const end of stops) end();
      const again = await create();
      expect(await store.mail(again.id)).toEqual([]);
    });

    /** A store that holds everything in memory, as the interface tells it. */
    test("any course of events ends as the interface says", async () => {
      const event = fc.oneof(
        fc.record({
          do: fc.constant("append"),
          at: fc.integer({ min: -1, max: 2 }),
          count: fc.integer({ min: 1, max: 3 }),
        }),
        fc.record({ do: fc.constant("post"), key: fc.option(fc.constantFrom("a", "b"), { nil: undefined }) }),
        fc.record({ do: fc.constant("take mail"), place: fc.nat(2) }),
        fc.record({ do: fc.constant("update"), status: fc.constantFrom<SessionStatus>("idle", "running", "waiting") }),
        fc.record({ do: fc.constant("bound update"), off: fc.integer({ min: -1, max: 1 }) }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (events) => {
          const { id } = await create();
          const model = {
            head: 0,
            status: "idle",
            title: "",
            mails: [] as { id: number; key?: string; taken: boolean }[],
          };
          const open = () => model.mails.filter(({ taken }) => !taken);
          let step = 0;
          for (const one of events) {
            step++;
            if (one.do === "append") {
              const { at, count } = one as { at: number; count: number };
              const records = Array.from({ length: count }, () => ({ type: "x", step }));
              const done = await store.append(id, model.head + at, records).then(
                () => true,
                (error: unknown) => !(error instanceof Fenced) && Promise.reject(error as Error),
              );
              expect(done).toBe(at === 0);
              if (at === 0) model.head += count;
            } else if (one.do === "post") {
              const { key } = one as { key?: string };
              const known = key === undefined ? undefined : model.mails.find((mail) => mail.key === key);
              const posted = await store.post(id, { kind: "message", body: { step }, ...(key && { key }) });
              expect(posted.isNew).toBe(known === undefined);
              if (known === undefined) model.mails.push({ id: posted.mail.id, taken: false, ...(key && { key }) });
              else expect(posted.mail.id).toBe(known.id);
            } else if (one.do === "take mail") {
              const mail = open()[(one as { place: number }).place];
              if (mail === undefined) continue;
              await store.append(id, model.head, [{ type: "turn.started", mail: mail.id }]);
              mail.taken = true;
              model.head++;
            } else if (one.do === "update") {
              const { status } = one as { status: SessionStatus };
              await store.update(id, { status });
              model.status = status;
            } else {
              const { off } = one as { off: number };
              const done = await store.update(id, { title: `t${step}` }, model.head + off).then(
                () => true,
                (error: unknown) => !(error instanceof Fenced) && Promise.reject(error as Error),
              );
              expect(done).toBe(off === 0);
              if (off === 0) model.title = `t${step}`;
            }
          }
          expect((await store.read(id, -1)).map(({ n }) => n)).toEqual(Array.from({ length: model.head }, (_, n) => n));
          expect((await store.mail(id)).map((mail) => mail.id)).toEqual(open().map((mail) => mail.id));
          expect(await store.get(id)).toMatchObject({
            status: model.status,
            ...(model.title && { title: model.title }),
          });
          const isOpen = model.status === "running" || (model.status === "idle" && open().length > 0);
          expect((await store.unfinished()).some((one) => one.id === id)).toBe(isOpen);
        }),
        { numRuns: 25 },
      );
    });

    test("what is removed is gone", async () => {
      const { id } = await create();
      await store.append(id, 0, [{ type: "a" }]);
      await store.remove(id);
      expect(await store.get(id)).toBeUndefined();
      expect(await store.read(id, -1)).toEqual([]);
    });
  });
}
