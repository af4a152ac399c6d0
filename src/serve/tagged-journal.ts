/**
 * A session's journal on a store. Records are collected and written where the session waits for them to be
 * stored, and a record says which mail it took.
 */
import type { SessionJournal } from "../session/index.ts";
import type { JournalRecord } from "../store/journal.ts";
import type { SessionStore } from "../store/session-store.ts";

export interface TaggedJournal extends SessionJournal {
  append(record: JournalRecord): void;
  commit(): Promise<void>;
  /** The next record of this type takes the mail; of messages, the one with this content. */
  tag(type: string, mail: number, content?: unknown): void;
  /** Takes the mail without doing anything with it. */
  drop(mail: number, reason: string): Promise<void>;
  /** Forgets the tags that found no record, and returns how many. Their mail is still there. */
  untag(): number;
  /** The number that the next record will have. */
  next(): number;
  readonly failure: unknown;
}

/** After this long at the latest, collected records are written, so that others see them. */
const flushMs = 50;

export function createTaggedJournal(store: SessionStore, id: string, head: number): TaggedJournal {
  let at = head;
  let gathered: JournalRecord[] = [];
  let total = head;
  let tags: { readonly type: string; readonly mail: number; readonly content: string | undefined }[] = [];
  let failure: unknown;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    clearTimeout(timer);
    timer = undefined;
    if (failure !== undefined) throw failure;
    const records = gathered;
    gathered = [];
    if (records.length === 0) return;
    try {
      await store.append(id, at, records);
      at += records.length;
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  const commit = () => (writing = writing.then(write, write));
  const append = (record: JournalRecord) => {
    const index = tags.findIndex(({ type, content }) => type === record.type && content === contentOf(record));
    const mail = tags[index]?.mail;
    if (mail !== undefined) tags = tags.filter((_, place) => place !== index);
    total++;
    gathered.push(mail === undefined ? record : { ...record, mail });
    timer ??= setTimeout(() => void commit().catch(() => undefined), flushMs).unref();
  };

  return {
    append,
    commit,
    tag: (type, mail, content) =>
      void tags.push({ type, mail, content: content === undefined ? undefined : JSON.stringify(content) }),
    drop(mail, reason) {
      tags = tags.filter((tag) => tag.mail !== mail);
      append({ type: "mail.dropped", mail, reason });
      return commit();
    },
    untag() {
      const left = tags.filter(({ type }) => type === "item.added").length;
      tags = [];
      return left;
    },
    next: () => total,
    get failure() {
      return failure;
    },
    async close() {
      await commit().catch(() => undefined); // told to whoever ran the turn
    },
  };
}

function contentOf(record: JournalRecord): string | undefined {
  if (record.type !== "item.added") return undefined;
  const item = record["item"] as { readonly content?: unknown };
  return JSON.stringify(item.content ?? null);
}
