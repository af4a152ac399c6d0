/** Rows of the tables as the store's own values, and the two statements that are more than a lookup. */
import type { JsonObject } from "../../base/json.ts";
import type { Mail, StoredSession, WaitingQuestion } from "../session-store.ts";
import { nowMs } from "./schema.ts";

export interface SessionRow {
  readonly id: string;
  readonly tenant: string;
  readonly title: string;
  readonly status: StoredSession["status"];
  readonly model: string;
  readonly cwd: string;
  readonly settings: JsonObject;
  readonly started_at: string;
  readonly updated_at: string;
  readonly questions: readonly WaitingQuestion[];
  readonly usage: StoredSession["usage"] | null;
  readonly takings: number;
}

export const sessionColumns =
  "id, tenant, title, status, model, cwd, settings, started_at, updated_at, questions, usage, takings";
export const mailColumns = "id, kind, body, at";

/** Moves the head, writes the records and marks the mail they took: all of it, or nothing if the head is elsewhere. */
export const appendStatement = `
  with moved as (
    update callgate.session
    set head = head + cardinality($3::text[]), takings = case when $5::boolean then 0 else takings end
    where id = $1 and head = $2::int returning id, tenant, ${nowMs} as at
  ), written as (
    insert into callgate.journal (session, tenant, n, at, record)
    select moved.id, moved.tenant, $2::int + place::int - 1, moved.at, text::json
    from moved, unnest($3::text[]) with ordinality as given (text, place)
  ), taken as (
    update callgate.mail set taken = $2::int from moved where session = moved.id and mail.id = any ($4::bigint[])
  )
  select tenant, at from moved`;

/** A waiting session accepts answers and a request to end. Messages wait until it is idle again. */
export const unfinishedQuery = `
  select id, tenant from callgate.session
  where status = 'running'
    or (status in ('idle', 'waiting') and exists (
      select from callgate.mail where mail.session = session.id and taken is null
        and not (session.status = 'waiting' and kind = 'message')))`;

export interface MailRow {
  readonly id: string;
  readonly kind: Mail["kind"];
  readonly body: JsonObject;
  readonly at: string;
}

export function toMail({ id, kind, body, at }: MailRow): Mail {
  return { id: Number(id), kind, body, at: Number(at) };
}

export function toSession({ started_at: startedAt, updated_at: updatedAt, usage, ...row }: SessionRow): StoredSession {
  return {
    ...row,
    startedAt: Number(startedAt),
    updatedAt: Number(updatedAt),
    ...(usage === null || usage === undefined ? {} : { usage }),
  };
}
