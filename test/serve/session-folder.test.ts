/** What becomes of a session's folder when another process goes on with it. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFolderBlobs, openSessionFolder, type PackStore } from "../../src/serve/index.ts";
import { rebuildHistory } from "../../src/session/history.ts";
import type { JournalRecord, StoredRecord } from "../../src/store/journal.ts";

/** Packs that two machines share, and the records of one session. */
function cluster() {
  const packs: Uint8Array[] = [];
  const shared: PackStore = {
    add: async (_session, pack) => void packs.push(pack),
    async *read() {
      yield* packs;
    },
    remove: async () => undefined,
  };
  const records: StoredRecord[] = [];
  const append = (record: JournalRecord) =>
    void records.push({ ...record, n: records.length, at: records.length } as StoredRecord);
  const machine = () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), "callgate-folder-")));
    const folder = join(root, "work");
    mkdirSync(folder);
    const open = () =>
      openSessionFolder({
        session: "s",
        folder,
        repository: `${folder}.states`,
        packs: shared,
        records: [...records],
        journal: { append, close: () => undefined },
        confinedTools: new Set(["exec_command"]),
      });
    return { folder, open };
  };
  const start = (id: string, folder: string, given: object = {}) =>
    append({
      type: "call.started",
      id,
      tool: "exec_command",
      confined: true,
      network: "off",
      write: [folder],
      ...given,
    });
  return { records, append, machine, start };
}

const asked = (id: string) => ({
  type: "item.added",
  item: { type: "call", id, name: "exec_command", kind: "function", arguments: "{}" },
});

test("another machine has what the last call that ended left, and not what a cut-off one did", async () => {
  const { records, append, machine, start } = cluster();
  const [a, b] = [machine(), machine()];
  const first = await a.open();
  append(asked("one"));
  start("one", a.folder);
  writeFileSync(join(a.folder, "file"), "one");
  append({ type: "call.ended", call: { id: "one", content: [], ok: true }, workspace: await first.keep() });
  append(asked("two"));
  start("two", a.folder);
  writeFileSync(join(a.folder, "half"), "two");
  const second = await b.open();
  expect(readFileSync(join(b.folder, "file"), "utf8")).toBe("one");
  expect(existsSync(join(b.folder, "half"))).toBe(false);
  expect(second.records.at(-1)).toMatchObject({ type: "workspace.restored" });
  expect(records.at(-1)).toMatchObject({ type: "workspace.restored" });
});

test("a cut-off call did not happen where it could change nothing else, and may have where it could", async () => {
  const { records, append, machine, start } = cluster();
  const a = machine();
  await a.open();
  for (const id of ["inside", "network", "outside", "server"]) append(asked(id));
  start("inside", a.folder);
  start("network", a.folder, { network: { hosts: ["example.org"] } });
  start("outside", a.folder, { write: [a.folder, "/srv"] });
  start("server", a.folder, { tool: "mail/send" });
  writeFileSync(join(a.folder, "trace"), "x");
  const opened = await a.open();
  expect(existsSync(join(a.folder, "trace"))).toBe(false);
  expect(records.at(-1)).toMatchObject({ type: "workspace.restored", undone: ["inside"] });
  const { items } = rebuildHistory(opened.records);
  const said = items.flatMap((item) =>
    item.type === "result" ? [[item.callId, JSON.stringify(item.content)] as const] : [],
  );
  for (const [id, words] of said) {
    if (id === "inside") expect(words).toContain("it did not happen");
    else expect(words).toContain("may have done");
  }
  expect(said).toHaveLength(4);
  // Taken care of once.
  writeFileSync(join(a.folder, "trace"), "by a program that was left running");
  await a.open();
  expect(existsSync(join(a.folder, "trace"))).toBe(true);
});

test("a machine whose call was cut off and told of elsewhere cleans its own folder when the session comes back", async () => {
  const { records, machine, start, append } = cluster();
  const [a, b] = [machine(), machine()];
  await a.open();
  append(asked("one"));
  start("one", a.folder);
  await b.open();
  expect(records.at(-1)).toMatchObject({ type: "workspace.restored" });
  // A process that was frozen, or a command that outlived it, wrote after all.
  writeFileSync(join(a.folder, "late"), "x");
  await a.open();
  expect(existsSync(join(a.folder, "late"))).toBe(false);
  // The call is told of once.
  expect(records.filter((record) => (record["undone"] as string[] | undefined)?.includes("one"))).toHaveLength(1);
});

test("pieces in a shared folder come back whole, and no name leads out of it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "callgate-blobs-"));
  const blobs = createFolderBlobs(folder);
  await blobs.put("session/abc", Buffer.from([0, 1, 255]));
  expect([...(await blobs.get("session/abc"))]).toEqual([0, 1, 255]);
  await blobs.remove("session/abc");
  await blobs.remove("session/abc");
  await expect(blobs.get("session/abc")).rejects.toThrow("ENOENT");
  for (const name of ["../x", "/etc/x", "a/../../b", ""]) expect(() => blobs.get(name)).toThrow("no name");
});
