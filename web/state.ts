/** What the page knows: who is asking, which sessions there are, which one is open. One place that talks to the service. */
import { batch, signal } from "@preact/signals";
import {
  type ApprovalReply,
  createClient,
  type Me,
  ServiceError,
  type SessionRow,
  type WaitingApproval,
} from "../src/client/index.ts";
import { createTimeline, type Entry, type Timeline } from "./timeline.ts";

export const client = createClient();
export const me = signal<Me | undefined>(undefined);
export const sessions = signal<readonly SessionRow[]>([]);
/** There are older sessions than those that are listed. */
export const hasMore = signal(false);
/** What the service found for the words in the search box; undefined where nothing is searched for. */
export const found = signal<readonly SessionRow[] | undefined>(undefined);
export const approvals = signal<readonly WaitingApproval[]>([]);
export const problem = signal<string | undefined>(undefined);
/** The service does not know this browser: it has no cookie yet, or an old one. */
export const isOutside = signal(false);
export const route = signal(location.hash.slice(1) || "/");
export const theme = signal<"light" | "dark">(readTheme());

export interface OpenSession {
  readonly id: string;
  readonly timeline: Timeline;
  /** Rises when entries come or go; a changed entry has a revision of its own. */
  readonly revision: ReturnType<typeof signal<number>>;
  readonly changed: Map<string, ReturnType<typeof signal<number>>>;
  readonly row: ReturnType<typeof signal<SessionRow | undefined>>;
  close(): void;
}

export const open = signal<OpenSession | undefined>(undefined);

export function can(role: Me["roles"][number]): boolean {
  return me.value?.roles.includes(role) === true;
}

/** Runs something that may fail, and says so where the person looks. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    problem.value = undefined;
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.status === 401) isOutside.value = true;
    else problem.value = error instanceof Error ? error.message : String(error);
    return false;
  }
}

export async function start(): Promise<void> {
  addEventListener("hashchange", () => (route.value = location.hash.slice(1) || "/"));
  await attempt(async () => {
    me.value = await client.me();
    await refresh();
  });
  void attempt(watchAll);
}

/** Lets this browser in with a token. The service answers with a cookie that no script can read. */
export async function enter(token: string): Promise<void> {
  const { ok, status } = await fetch("/enter", { method: "POST", headers: { authorization: `Bearer ${token}` } });
  if (ok) return location.reload();
  throw new Error(status === 401 ? "The service does not know this token." : `The service answered with ${status}.`);
}

export async function refresh(): Promise<void> {
  const [list, waiting] = await Promise.all([client.sessions({ limit: pageSize }), client.approvals()]);
  batch(() => {
    sessions.value = list.sessions;
    hasMore.value = list.more;
    approvals.value = waiting;
  });
}

const pageSize = 100;

export async function loadOlder(): Promise<void> {
  const before = sessions.value.at(-1)?.id;
  await attempt(async () => {
    const list = await client.sessions({ limit: pageSize, ...(before === undefined ? {} : { before }) });
    const known = new Set(sessions.value.map(({ id }) => id));
    batch(() => {
      sessions.value = [...sessions.value, ...list.sessions.filter(({ id }) => !known.has(id))];
      hasMore.value = list.more;
    });
  });
}

let searching: ReturnType<typeof setTimeout> | undefined;

/** The service looks through all sessions, also those that are not listed here; a moment after the last key. */
export function search(words: string): void {
  clearTimeout(searching);
  if (words.trim() === "") return void (found.value = undefined);
  searching = setTimeout(
    () =>
      void attempt(async () => {
        found.value = (await client.sessions({ q: words.trim().slice(0, 200), limit: pageSize })).sessions;
      }),
    150,
  );
}

async function watchAll(): Promise<void> {
  const never = new AbortController().signal;
  // What happened while there was no stream, after a restart of the service or of the machine, is asked for.
  for await (const row of client.watch(never, () => void attempt(refresh))) {
    const others = sessions.value.filter(({ id }) => id !== row.id);
    sessions.value = [row, ...others].toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
    if (row.waitingFor !== undefined || approvals.value.some(({ session }) => session.id === row.id))
      await attempt(async () => (approvals.value = await client.approvals()));
  }
}

/** Events may come a hundred a second: the screen is drawn once a frame. */
export function openSession(id: string): OpenSession {
  open.value?.close();
  const stop = new AbortController();
  const revision = signal(0);
  const changed = new Map<string, ReturnType<typeof signal<number>>>();
  const row = signal<SessionRow | undefined>(sessions.value.find((session) => session.id === id));
  const dirty = new Set<Entry>();
  let scheduled = false;
  let structural = false;
  const flush = () => {
    scheduled = false;
    batch(() => {
      for (const entry of dirty) revisionOf(opened, entry.key).value = entry.revision;
      dirty.clear();
      if (structural) revision.value = (revision.value ?? 0) + 1;
      structural = false;
    });
  };
  const timeline = createTimeline((entry) => {
    if (entry === undefined) structural = true;
    else dirty.add(entry);
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(flush);
  });
  const opened: OpenSession = { id, timeline, revision, changed, row, close: () => stop.abort() };
  open.value = opened;
  void attempt(async () => {
    for await (const event of client.events(id, -1, stop.signal)) {
      if (event.type === "record") timeline.add(event.record);
      else if (event.type === "live") timeline.live({ ...event.event });
      else row.value = event.session;
    }
  });
  return opened;
}

export function revisionOf(opened: OpenSession, key: string): ReturnType<typeof signal<number>> {
  let known = opened.changed.get(key);
  if (known === undefined) opened.changed.set(key, (known = signal(0)));
  return known;
}

export async function answer(session: string, callId: string, reply: ApprovalReply): Promise<boolean> {
  const done = await attempt(() => client.approve(session, callId, reply));
  // Ids of calls are those of their session alone.
  const isIt = (one: WaitingApproval) => one.session.id === session && one.request.call.id === callId;
  if (done) approvals.value = approvals.value.filter((one) => !isIt(one));
  return done;
}

function readTheme(): "light" | "dark" {
  const kept = localStorage.getItem("callgate-theme");
  if (kept === "light" || kept === "dark") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function switchTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem("callgate-theme", theme.value);
}
