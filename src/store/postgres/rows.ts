/** Rows of the tables as the store's own values, and what is found by its key. */
import type { JsonObject } from "../../base/json.ts";
import { checkRequest, type Mail, type StoredSession, type WaitingQuestion } from "../session-store.ts";
import type { Queries } from "./schema.ts";

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

/** The session that was made with the key. Throws KeyReused if it was made for another request. */
export async function findCreated(
  database: Queries,
  tenant: string,
  key: string,
  request: string | undefined,
): Promise<StoredSession | undefined> {
  const { rows } = await database.query<SessionRow & { request: string | null }>(
    `select ${sessionColumns}, request from callgate.session where tenant = $1 and key = $2`,
    [tenant, key],
  );
  if (rows[0] === undefined) return undefined;
  const { request: stored, ...row } = rows[0];
  checkRequest(stored, request);
  return toSession(row);
}

/** The mail that was sent with the key. Throws KeyReused if it was sent for another request. */
export async function findPosted(
  database: Queries,
  id: string,
  key: string,
  request: string | undefined,
): Promise<Mail | undefined> {
  const { rows } = await database.query<MailRow & { request: string | null }>(
    `select ${mailColumns}, request from callgate.mail where session = $1 and key = $2`,
    [id, key],
  );
  if (rows[0] === undefined) return undefined;
  checkRequest(rows[0].request, request);
  return toMail(rows[0]);
}
