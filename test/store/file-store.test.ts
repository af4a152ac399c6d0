import { appendFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFileStore } from "../../src/store/file-store.ts";
import { sessionStoreLaws } from "./session-store.ts";

const newFolder = () => mkdtempSync(join(tmpdir(), "callgate-file-store-"));

sessionStoreLaws("a folder", async () => createFileStore({ folder: newFolder(), ownTenant: "main" }));

test("what was kept is there after a restart: sessions, records, mail and what of it was taken", async () => {
  const folder = newFolder();
  const first = createFileStore({ folder });
  const { session } = await first.create(
    { id: "20261116-1", tenant: "t", title: "x", model: "m", cwd: "/", settings: {} },
    "k",
  );
  const { mail } = await first.post(session.id, { kind: "message", body: { content: "one" } });
  await first.post(session.id, { kind: "message", body: { content: "two" } });
  await first.append(session.id, 0, [{ type: "turn.started", mail: mail.id }]);
  await first.update(session.id, { status: "waiting" });
  await first.close();
  appendFileSync(join(folder, "serve", "tenants", "t", `${session.id}.mail.jsonl`), '{"id":3,"kind":"mess');
  const second = createFileStore({ folder });
  expect(await second.get(session.id)).toMatchObject({ status: "waiting", title: "x" });
  expect(await second.read(session.id, -1)).toHaveLength(1);
  expect((await second.mail(session.id)).map(({ body }) => body["content"])).toEqual(["two"]);
  await second.post(session.id, { kind: "message", body: { content: "three" } });
  await second.close();
  const third = createFileStore({ folder });
  expect((await third.mail(session.id)).map(({ body }) => body["content"])).toEqual(["two", "three"]);
  await third.close();
});
