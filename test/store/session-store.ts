/** The laws of a session store, for every store there is. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Fenced, KeyReused, type SessionStore, type StoreChange } from "../../src/store/session-store.ts";

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

    test("what is removed is gone", async () => {
      const { id } = await create();
      await store.append(id, 0, [{ type: "a" }]);
      await store.remove(id);
      expect(await store.get(id)).toBeUndefined();
      expect(await store.read(id, -1)).toEqual([]);
    });
  });
}
