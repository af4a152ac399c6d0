/**
 * Writes records of several sessions with one statement. A statement costs a worker more than the records in
 * it, and it mostly waits for the disk. Records that arrive while enough statements are running are written
 * with the next one.
 */
import type { JournalRecord } from "../journal.ts";
import { Fenced, isProgress, takenMail, Unavailable } from "../session-store.ts";
import type { Queries } from "./database.ts";
import { nowMs } from "./schema.ts";

/** What the database returned for written records: their tenant, and the time. */
export interface Written {
  readonly tenant: string;
  readonly at: number;
}

interface Waiting {
  readonly id: string;
  readonly at: number;
  readonly texts: readonly string[];
  readonly mails: readonly number[];
  readonly isProgress: boolean;
  readonly done: (written: Written) => void;
  readonly fail: (error: unknown) => void;
}

/** Two statements at a time: while one waits for the disk, the next is already being sent. */
const maxUnderWay = 2;
/** The size limit of one statement. Records that one session writes at once are never split. */
const maxBytes = 1024 * 1024;
const maxSessions = 100;

/** Moves the head, writes the records and marks the mail they took: all of it, or nothing if the head is elsewhere. */
const forOne = `
  with moved as (
    update callgate.session
    set head = head + $3::int, takings = case when $4::boolean then 0 else takings end
    where id = $1 and head = $2::int returning id, tenant, ${nowMs} as at
  ), written as (
    insert into callgate.journal (session, tenant, n, at, record)
    select moved.id, moved.tenant, $2::int + place::int - 1, moved.at, text
    from moved, json_array_elements($5::json) with ordinality as given (text, place)
  ), taken as (
    update callgate.mail set taken = $2::int from moved where session = moved.id and mail.id = any ($6::bigint[])
  )
  select id, tenant, at from moved`;

/** The same for several sessions. One whose head is elsewhere is left out. */
const forMany = `
  with given as (
    select * from unnest($1::text[], $2::int[], $3::int[], $4::boolean[]) with ordinality
      as given (id, at, count, is_progress, place)
  ), moved as (
    update callgate.session
    set head = head + given.count, takings = case when given.is_progress then 0 else takings end
    from given where session.id = given.id and session.head = given.at
    returning session.id, session.tenant, ${nowMs} as at, given.at as first, given.place
  ), written as (
    insert into callgate.journal (session, tenant, n, at, record)
    select moved.id, moved.tenant, record.n, moved.at, record.text
    from rows from (json_array_elements($5::json), unnest($6::int[]), unnest($7::int[])) as record (text, place, n)
    join moved on moved.place = record.place
  ), taken as (
    update callgate.mail set taken = moved.first
    from moved where mail.session = moved.id and mail.id = any ($8::bigint[])
  )
  select id, tenant, at from moved`;

/** Appends all of the records of a session or none. Throws Fenced if the number of the first is taken. */
export function createAppend(database: Queries) {
  let waiting: Waiting[] = [];
  /** The sessions of each statement that is under way. */
  const underWay = new Set<ReadonlyMap<string, Waiting>>();
  let isPlanned = false;

  const send = async (batch: readonly Waiting[]) => {
    try {
      const { text, values } = batch.length === 1 ? toStatement(batch[0]!) : toStatements(batch);
      const { rows } = await database.query<{ id: string; tenant: string; at: string }>(text, values);
      const written = new Map(rows.map(({ id, tenant, at }) => [id, { tenant, at: Number(at) }]));
      for (const { id, at, done, fail } of batch) {
        const own = written.get(id);
        if (own === undefined) fail(new Fenced(id, at));
        else done(own);
      }
    } catch (error) {
      const [first] = batch;
      if (error instanceof Unavailable || first === undefined) for (const { fail } of batch) fail(error);
      else if (batch.length === 1) first.fail(isUniqueViolation(error) ? new Fenced(first.id, first.at) : error);
      // An error of one of them must not affect the others.
      else for (const one of batch) await send([one]);
    }
  };
  const flush = () => {
    isPlanned = false;
    while (underWay.size < maxUnderWay && waiting.length > 0) {
      const batch = takeBatch(waiting, (id) => [...underWay].some((sent) => sent.has(id)));
      if (batch.size === 0) return;
      waiting = waiting.filter((one) => batch.get(one.id) !== one);
      underWay.add(batch);
      void send([...batch.values()]).finally(() => {
        underWay.delete(batch);
        flush();
      });
    }
  };
  return (id: string, at: number, records: readonly JournalRecord[]): Promise<Written> =>
    new Promise((done, fail) => {
      waiting.push({
        id,
        at,
        texts: records.map((record) => JSON.stringify(record)),
        mails: records.flatMap((record) => takenMail(record) ?? []),
        isProgress: records.some(isProgress),
        done,
        fail,
      });
      // Sessions that were answered together write together.
      if (isPlanned || underWay.size >= maxUnderWay) return;
      isPlanned = true;
      setImmediate(flush);
    });
}

/** The oldest of them, each session once. What comes after something of the same session waits for that. */
function takeBatch(waiting: readonly Waiting[], isBusy: (id: string) => boolean): ReadonlyMap<string, Waiting> {
  const batch = new Map<string, Waiting>();
  let bytes = 0;
  for (const one of waiting) {
    if (batch.has(one.id) || isBusy(one.id)) continue;
    bytes += one.texts.reduce((sum, { length }) => sum + length, 0);
    if (batch.size > 0 && (batch.size >= maxSessions || bytes > maxBytes)) break;
    batch.set(one.id, one);
  }
  return batch;
}

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Records go as one text: the driver would have to quote each of them for a list. */
function toStatement({ id, at, texts, mails, ...one }: Waiting): Statement {
  return { text: forOne, values: [id, at, texts.length, one.isProgress, `[${texts.join(",")}]`, mails] };
}

function toStatements(batch: readonly Waiting[]): Statement {
  const values = [
    batch.map(({ id }) => id),
    batch.map(({ at }) => at),
    batch.map(({ texts }) => texts.length),
    batch.map((one) => one.isProgress),
    `[${batch.flatMap(({ texts }) => texts).join(",")}]`,
    batch.flatMap(({ texts }, place) => texts.map(() => place + 1)),
    batch.flatMap(({ at, texts }) => texts.map((_text, n) => at + n)),
    batch.flatMap(({ mails }) => mails),
  ];
  return { text: forMany, values };
}

function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "23505";
}
