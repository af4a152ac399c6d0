/** The routes that change something. For the caller, a session of another tenant does not exist. */
import { createHash } from "node:crypto";
import { defined, stableStringify, type Json } from "../base/json.ts";
import type { Role } from "../client/index.ts";
import type { StoredRecord } from "../store/journal.ts";
import { takenMail, type Mail, type NewMail, type SessionStore, type StoredSession } from "../store/session-store.ts";
import { createSessionId } from "../store/sessions.ts";
import type { ApiRequest, Reply } from "./api-request.ts";
import { Problem } from "./problem.ts";
import { own, toRow } from "./reading.ts";
import type { Service } from "./service.ts";
import { issueToken } from "./tenants.ts";

export async function createSession(asked: ApiRequest, service: Service): Promise<Reply> {
  const { principal, body } = asked;
  const { store, limits, random } = service;
  const { tenant } = principal;
  const { key, request } = readKey(asked);
  // Checked first: a request that was answered before gets the same answer, even if a new session would now be
  // refused.
  const known = key === undefined ? undefined : await store.created(tenant, key, request);
  if (known !== undefined) return toCreated(known);
  const { sessions } = await limits(tenant);
  if (sessions < Infinity && (await service.countSessions(tenant)) >= sessions)
    throw service.tooMany(
      principal,
      "quota",
      `The tenant has ${sessions} sessions, and no more are allowed: remove some.`,
      60_000,
    );
  const settings = await service.checkSettings(tenant, body);
  const { title, model } = body;
  // Two random parts, because all tenants of all processes share the ids of one second.
  const id = `${createSessionId(new Date(service.now()), random)}${createSessionId(new Date(0), random).slice(-6)}`;
  const { session, isNew } = await store.create(
    {
      id,
      tenant,
      title: typeof title === "string" ? title : "",
      model: typeof model === "string" ? model : service.model,
      cwd: settings.cwd,
      settings: settings.settings,
    },
    key,
    request,
  );
  if (isNew) service.audit(principal, "session.created", { session: id });
  return toCreated(session);
}

function toCreated(session: StoredSession): Reply {
  return { status: 201, json: toRow(session), headers: { location: `/v1/sessions/${session.id}` } };
}

export async function removeSession(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await ownServed(asked, service);
  if (session.status === "running") throw new Problem(409, "running", "The session is running: cancel its turn first.");
  await service.store.remove(session.id);
  service.audit(asked.principal, "session.removed", { session: session.id });
  return { status: 204 };
}

export async function postMessage(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await ownServed(asked, service);
  const { principal, body } = asked;
  const once = readMailKey(asked, "message");
  const known = await findPosted(session, once, service);
  if (known !== undefined) return { status: 202, json: { n: known.id } };
  await service.takeRate(principal, "messages");
  await service.checkBudget(principal);
  if (session.status === "faulty" || session.status === "ended")
    throw new Problem(409, session.status, `The session is ${session.status} and takes no more messages.`);
  const words = String(body["text"]);
  const images = Array.isArray(body["attachments"]) ? body["attachments"] : [];
  if (words.trim() === "" && images.length === 0) throw new Problem(400, "empty", "The message is empty.");
  const content: Json = [...(words === "" ? [] : [{ type: "text", text: words }]), ...images];
  const { mail, isNew } = await service.post(session, {
    kind: "message",
    body: { content, mode: body["mode"] ?? "queue", from: principal.name },
    ...once,
  });
  if (isNew) service.audit(principal, "message", { session: session.id, message: mail.id });
  return { status: 202, json: { n: mail.id } };
}

export async function approve(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await ownServed(asked, service);
  const { principal, body, params } = asked;
  const callId = params["callId"]!;
  const { answer, message, hash, keep } = body;
  const { key: given, request: hashed } = readKey(asked);
  const request = given === undefined ? undefined : `${given} ${hashed}`;
  const question = session.questions.find((one) => one.callId === callId);
  if (question === undefined || question.hash !== hash) {
    const records = await service.store.read(session.id, -1);
    const asks = records.filter((record) => record.type === "approval.asked" && record["id"] === callId);
    for (const { n } of asks)
      if (await isSameAnswer(session, approvalKey(callId, String(hash), n), request, service)) return taken;
    if (question !== undefined) throw new Problem(409, "changed", "The question has changed: look at it again.");
    if (asks.length > 0) throw new Problem(409, "answered", "This question was answered already.");
    throw new Problem(404, "not-found", "Nothing waits under this call.");
  }
  const key = approvalKey(callId, question.hash, question.n);
  const { isNew } = await service.post(session, {
    kind: "approval",
    key,
    body: {
      ...(request === undefined ? {} : { request }),
      callId,
      hash: question.hash,
      answer: {
        answer: answer ?? "no",
        ...(message === undefined ? {} : { message }),
        ...(keep === undefined || answer === "no" || answer === "stop" || answer === "direct" ? {} : { keep }),
      },
      from: principal.name,
    },
  });
  if (!isNew) {
    if (await isSameAnswer(session, key, request, service)) return taken;
    throw new Problem(409, "answered", "This question was answered already.");
  }
  service.audit(principal, "approval", {
    session: session.id,
    call: callId,
    answer: answer ?? null,
    hash: question.hash,
  });
  return taken;
}

const taken: Reply = { status: 202, json: {} };

/** The question's record is part of the key, because a held command that runs again may ask the same question again. */
function approvalKey(callId: string, hash: string, n: number): string {
  return `approval ${callId} ${hash} ${n}`;
}

/** Whether the answer that a question got is this very request, which came once before with its Idempotency-Key. */
async function isSameAnswer(
  session: StoredSession,
  key: string,
  request: string | undefined,
  { store }: Service,
): Promise<boolean> {
  return request !== undefined && (await store.posted(session.id, key))?.body["request"] === request;
}

export async function cancel(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await ownServed(asked, service);
  const mail: NewMail = { kind: "cancel", body: { from: asked.principal.name }, ...readMailKey(asked, "cancel") };
  const { isNew } = await service.post(session, mail);
  if (isNew) service.audit(asked.principal, "cancel", { session: session.id });
  return taken;
}

const undoWaitMs = 30_000;

export async function undo(asked: ApiRequest, service: Service): Promise<Reply> {
  const session = await ownServed(asked, service);
  const once = readMailKey(asked, "undo");
  const mail = (await findPosted(session, once, service)) ?? (await postUndo(session, once, asked, service));
  const done = await untilTaken(service.store, session.id, mail.id, undoWaitMs);
  if (done === undefined) throw new Problem(504, "timeout", "It is being taken back, and that takes long: look again.");
  return { status: 200, json: { undone: done["undone"] ?? [], conflicts: done["conflicts"] ?? [] } };
}

async function postUndo(session: StoredSession, once: MailKey, asked: ApiRequest, service: Service): Promise<Mail> {
  if (session.status === "running" || session.status === "waiting")
    throw new Problem(409, session.status, "A turn is open: cancel it or let it end first.");
  const { turn } = asked.body;
  const body = { ...(turn === undefined ? {} : { turn }), from: asked.principal.name };
  const { mail, isNew } = await service.post(session, { kind: "undo", body, ...once });
  if (isNew) service.audit(asked.principal, "undo", { session: session.id });
  return mail;
}

/** The record that took a mail. Undefined if there is none after `waitMs`. */
async function untilTaken(
  store: SessionStore,
  id: string,
  mail: number,
  waitMs: number,
): Promise<StoredRecord | undefined> {
  let after = -1;
  let stop = () => {};
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    const records = await store.read(id, after);
    after = records.at(-1)?.n ?? after;
    return records.find((record) => takenMail(record) === mail);
  };
  try {
    return await new Promise((resolve, reject) => {
      const tryNow = () =>
        void look().then((found) => {
          if (found !== undefined) resolve(found);
        }, reject);
      stop = store.watch(({ type }) => {
        if (type === "records") tryNow();
      }, id);
      timer = setTimeout(() => resolve(undefined), waitMs);
      tryNow();
    });
  } finally {
    stop();
    clearTimeout(timer);
  }
}

export async function listTokens({ principal }: ApiRequest, { tokens }: Service): Promise<Reply> {
  const all = await tokens.list(principal.tenant);
  return { status: 200, json: { tokens: all.map(({ hash: _hash, ...rest }) => rest) } };
}

export async function addToken({ principal, body }: ApiRequest, service: Service): Promise<Reply> {
  const { name, roles, days } = body;
  const made = await issueToken(
    service.tokens,
    {
      tenant: principal.tenant,
      name: String(name),
      roles: roles as readonly Role[], // words of the route's schema
      ...(typeof days === "number" ? { lifetimeMs: days * 86_400_000 } : {}),
    },
    service.now(),
  );
  service.audit(principal, "token.added", { token: made.id, name: String(name) });
  return { status: 201, json: made };
}

export async function removeToken({ principal, params }: ApiRequest, service: Service): Promise<Reply> {
  if (!(await service.tokens.remove(principal.tenant, params["id"]!)))
    throw new Problem(404, "not-found", "There is no such token.");
  service.audit(principal, "token.removed", { token: params["id"]! });
  return { status: 204 };
}

/** The same for a session that this service runs. Recorded ones can only be read. */
async function ownServed(asked: ApiRequest, service: Service): Promise<StoredSession> {
  const session = await own(asked, service);
  if (session.settings["recorded"] !== undefined)
    throw new Problem(409, "recorded", "This session was recorded elsewhere and can only be looked at.");
  return session;
}

/** The Idempotency-Key of a request, and the hash by which the store knows the same request again. */
function readKey({ request, body }: ApiRequest): { readonly key?: string; readonly request?: string } {
  const key = request.headers["idempotency-key"];
  if (key === undefined || key === "") return {};
  if (typeof key !== "string" || key.length > 200)
    throw new Problem(400, "invalid", "An Idempotency-Key has at most 200 characters.");
  const words = stableStringify([request.method, request.url, body]);
  return { key, request: createHash("sha256").update(words).digest("hex") };
}

type MailKey = Pick<NewMail, "key" | "request">;

/** The same for something that is sent to a session, where a key stands for one request of its kind. */
function readMailKey(asked: ApiRequest, kind: Mail["kind"]): MailKey {
  const { key, request } = readKey(asked);
  return key === undefined ? {} : defined({ key: `${kind} ${key}`, request });
}

/**
 * What was sent before with the same key. It gets the answer of that time, even if a new request would now
 * be refused.
 */
async function findPosted({ id }: StoredSession, { key, request }: MailKey, { store }: Service) {
  return key === undefined ? undefined : store.posted(id, key, request);
}
