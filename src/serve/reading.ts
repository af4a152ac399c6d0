/** The routes that only read. For the caller, a session of another tenant does not exist. */
import type { SessionRow } from "../client/index.ts";
import { formatJournal } from "../store/journal.ts";
import { recordingPage } from "../store/recording-page.ts";
import type { SessionStatus, StoredSession } from "../store/session-store.ts";
import { followSession, followTenant, openStream, type Stream } from "./events.ts";
import { writeLimits } from "./limits.ts";
import { Problem } from "./problem.ts";
import type { ApiRequest, Reply } from "./api-request.ts";
import type { Service } from "./service.ts";

export function toRow(session: StoredSession): SessionRow {
  const { id, title, status, model, cwd, usage, settings } = session;
  const [question] = session.questions;
  const kind =
    settings["recorded"] === undefined ? "session" : settings["recorded"] === "gateway" ? "gateway" : "recorded";
  return {
    id,
    title,
    // The question about a held run is asked while its process waits. For observers the session is waiting all the
    // same.
    status: status === "running" && question !== undefined ? "waiting" : status,
    kind,
    model,
    cwd,
    startedAt: new Date(session.startedAt).toISOString(),
    updatedAt: new Date(session.updatedAt).toISOString(),
    ...(question === undefined
      ? {}
      : { waitingFor: { callId: question.callId, tool: question.tool, reason: question.reason } }),
    ...(usage === undefined ? {} : { usage }),
  };
}

export async function me({ principal }: ApiRequest, { version, model }: Service): Promise<Reply> {
  const { tenant, name, roles } = principal;
  return { status: 200, json: { tenant, name, roles, version, model } };
}

/** What the tenant may use, and what it has used. Null means no limit. */
export async function getLimits({ principal: { tenant } }: ApiRequest, service: Service): Promise<Reply> {
  const [limits, used, counts] = await Promise.all([
    service.limits(tenant),
    service.usage(tenant),
    service.store.counts(tenant),
  ]);
  const sessions = Object.values(counts).reduce((sum, n) => sum + n, 0);
  return {
    status: 200,
    json: { limits: writeLimits(limits), used: { ...used, sessions, running: counts.running ?? 0 } },
  };
}

export async function listSessions({ principal, query }: ApiRequest, { store }: Service): Promise<Reply> {
  const status = query.get("status") ?? undefined;
  const q = query.get("q") ?? undefined;
  const before = query.get("before") ?? undefined;
  const { sessions, more } = await store.list({
    tenant: principal.tenant,
    limit: Math.min(Number(query.get("limit") ?? 50) || 50, 500),
    // One of the words of the route's schema.
    ...(status === undefined || status === "" ? {} : { status: status as SessionStatus }),
    ...(q === undefined || q === "" ? {} : { q }),
    ...(before === undefined || before === "" ? {} : { before }),
  });
  return { status: 200, json: { sessions: sessions.map(toRow), more } };
}

export async function getSession(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await own(asked, service);
  const records = await service.store.read(session.id, -1);
  const last = (type: string) => records.findLast((record) => record.type === type);
  const diff = last("diff.updated");
  const context = last("usage.updated")?.["contextTokens"];
  return {
    status: 200,
    json: {
      session: toRow(session),
      ...(last("plan.updated") === undefined ? {} : { plan: last("plan.updated")?.["plan"] }),
      ...(diff === undefined ? {} : { diff: { diff: diff["diff"], files: diff["files"], notes: diff["notes"] } }),
      ...(context === undefined ? {} : { context: { tokens: context } }),
    },
  };
}

export async function readRecords(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await own(asked, service);
  const limit = Math.min(Number(asked.query.get("limit") ?? 500) || 500, 5_000);
  const records = await service.store.read(session.id, readAfter(asked.query.get("after")), limit + 1);
  return { status: 200, json: { records: records.slice(0, limit), more: records.length > limit } };
}

export async function followOne(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await own(asked, service);
  const { request, query } = asked;
  const given = request.headers["last-event-id"];
  const after = readAfter(typeof given === "string" && given !== "" ? given : query.get("after"));
  await follow(asked, service, (stream) => followSession(stream, service.store, session.id, after, toRow));
  return undefined;
}

export async function followAll(asked: ApiRequest, service: Service): Promise<Reply> {
  const { tenant } = asked.principal;
  await follow(asked, service, (stream) => followTenant(stream, service.store, tenant, toRow));
  return undefined;
}

/** Runs a stream until its client or the service ends it. */
function follow(
  { principal, response }: ApiRequest,
  service: Service,
  run: (stream: Stream) => Promise<void>,
): Promise<void> {
  return service.listening(principal, async () => {
    const stream = openStream(response, service.encode);
    const forget = service.onStop(stream.end);
    await run(stream).finally(forget);
  });
}

export async function exportSession(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await own(asked, service);
  const format = asked.query.get("format") ?? "jsonl";
  const records = await service.store.read(session.id, -1);
  const file = (ending: string, type: string, text: string): Reply => ({
    status: 200,
    text,
    headers: {
      "content-type": `${type}; charset=utf-8`,
      // Offered only as a download, because models and programs wrote its content.
      "content-disposition": `attachment; filename="${session.id}.${ending}"`,
    },
  });
  if (format === "md") {
    if (service.toMarkdown === undefined) throw new Problem(404, "not-found", "There is no Markdown here.");
    return file("md", "text/markdown", service.toMarkdown(toRow(session), records));
  }
  if (format === "html") return file("html", "text/html", recordingPage(session.title || session.id, records));
  return file("jsonl", "application/jsonl", formatJournal(records));
}

export async function listApprovals({ principal }: ApiRequest, { store }: Service): Promise<Reply> {
  const { tenant } = principal;
  // A held run asks while its session is running.
  const lists = await Promise.all(
    (["waiting", "running"] as const).map((status) => store.list({ tenant, status, limit: 500 })),
  );
  const sessions = lists.flatMap((list) => list.sessions);
  const approvals = await Promise.all(
    sessions.map(async (session) =>
      Promise.all(
        session.questions.map(async ({ n, at }) => {
          const [record] = await store.read(session.id, n - 1, 1);
          return { session: toRow(session), request: record?.["request"], askedAt: at };
        }),
      ),
    ),
  );
  return { status: 200, json: { approvals: approvals.flat().filter(({ request }) => request !== undefined) } };
}

/** The session, if it is the tenant's. */
export async function own({ principal, params }: ApiRequest, { store }: Service): Promise<StoredSession> {
  const session = await store.get(params["id"]!);
  if (session === undefined || session.tenant !== principal.tenant)
    throw new Problem(404, "not-found", "There is no such session.");
  return session;
}

function readAfter(given: string | null): number {
  const after = Number(given ?? -1);
  if (!Number.isInteger(after) || after < -1) throw new Problem(400, "invalid", "'after' is the number of a record.");
  return after;
}
