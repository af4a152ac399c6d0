/**
 * Wakes one session: loads its records, takes what was sent to it, and continues the turn until it waits
 * for a person or has nothing to do. Nothing of the session is kept here afterwards. This is the same for
 * every store.
 */
import type { JsonObject } from "../base/json.ts";
import { checkOptions } from "../base/shape.ts";
import type { Session, SessionEvent } from "../session/index.ts";
import type { MessageItem } from "../spec/model.ts";
import { Fenced, Unavailable, type Mail, type SessionStore, type StoredSession } from "../store/session-store.ts";
import { runnerShape, type OpenedSession, type RunnerOptions, type Undone } from "./open-session.ts";
import {
  createLiveQuestions,
  createStatus,
  isLive,
  findQuestions,
  readApproval,
  type LiveQuestions,
} from "./status.ts";
import { createTaggedJournal, type TaggedJournal } from "./tagged-journal.ts";

/** Runs a session until it is idle, waits for a person, or has failed. */
export interface Runner {
  run(id: string): Promise<void>;
  /** Running turns finish their calls and are left open for another process to continue. */
  drain(): void;
  /** Ends the running turns of a tenant. True if there were any. */
  interrupt(tenant: string): boolean;
}

/** A session that was taken this often without writing a record probably kills its process, so it is set aside. */
const maxTakings = 5;
/** How often a session is read again because the last write of a dead process arrived after it was read. */
const maxFences = 3;

/** A session that is running in this process. */
interface Live {
  readonly tenant: string;
  readonly questions: LiveQuestions;
}

/** Creates the runner that every dispatcher uses to run a session. */
export function createRunner(options: RunnerOptions): Runner {
  checkOptions("createRunner", options, runnerShape);
  const { store } = options;
  const live = new Map<Session, Live>();
  const state = { isDraining: false };

  return {
    async run(id) {
      for (let fences = 0; !state.isDraining && (await hasWork(id, store));) {
        const release = await store.take(id);
        if (release === undefined) return; // the process that holds it checks the mailbox again after releasing it
        try {
          while (!state.isDraining && (await wakeOnce(id, options, live, () => state.isDraining))) continue;
        } catch (error) {
          // After another process has written, the session may be continued only after it was taken and its
          // records were read again.
          if (!(error instanceof Fenced) || ++fences > maxFences) throw error;
        } finally {
          await release();
        }
      }
    },
    drain() {
      state.isDraining = true;
      for (const [session, { questions }] of live) {
        session.pause();
        questions.giveUp();
      }
    },
    interrupt(tenant) {
      const own = [...live].filter(([, { tenant: whose }]) => whose === tenant);
      for (const [session] of own) session.interrupt();
      return own.length > 0;
    },
  };
}

async function hasWork(id: string, store: SessionStore): Promise<boolean> {
  const stored = await store.get(id);
  if (stored === undefined || stored.status === "faulty" || stored.status === "ended") return false;
  // A waiting session takes answers and requests to end. Messages wait until it is idle again.
  const mails = await store.mail(id);
  return stored.status === "running" || mails.some(({ kind }) => !(kind === "message" && stored.status === "waiting"));
}

/** True if the session should be opened again, because there may be more to do. */
async function wakeOnce(
  id: string,
  options: RunnerOptions,
  live: Map<Session, Live>,
  isDraining: () => boolean,
): Promise<boolean> {
  const { store } = options;
  const stored = await store.get(id);
  if (stored === undefined || stored.status === "faulty" || stored.status === "ended") return false;
  const mails = await store.mail(id);
  if (mails.length === 0 && stored.status !== "running") return false;
  if (stored.takings >= maxTakings) {
    await store.update(id, { status: "faulty" });
    return false;
  }
  const records = await store.read(id, -1);
  const questionsLeft = findQuestions(records);
  await store.update(id, { status: "running", takings: stored.takings + 1, questions: questionsLeft }, records.length);
  const journal = createTaggedJournal(store, id, records.length);
  const status = createStatus({ ...stored, questions: questionsLeft }, records.length === 0, () => journal.next());
  const questions = createLiveQuestions();
  const opening = options.open({
    stored,
    records,
    journal,
    approver: questions.approver,
    onEvent(event) {
      status.heard(event);
      if (event.type === "approval.asked" && event.request.effects !== undefined)
        void journal
          .commit()
          .then(() => store.update(id, { questions: status.change().questions }))
          .catch(ignore);
      if (isLive(event)) store.publish(id, stored.tenant, event as unknown as JsonObject);
      options.onEvent?.(stored, event);
    },
  });
  const opened = await opening.catch((error: unknown) => failToOpen(error, mails, journal, options, id));
  if (opened === undefined) return true;
  const { session } = opened;
  live.set(session, { tenant: stored.tenant, questions });
  const unfollow = options.telemetry?.follow(session, { model: stored.model, agent: stored.tenant });
  // Without the store nothing is known about the turn. The session keeps the status "running" for the
  // process that reaches the store again.
  let isAway = false;
  try {
    const again = await play({ options, stored, opened, journal, live: questions, isDraining });
    await journal.commit();
    return again;
  } catch (error) {
    isAway = error instanceof Unavailable;
    throw error;
  } finally {
    live.delete(session);
    await session.close();
    unfollow?.();
    await opened.close();
    const open = session.openTurn;
    const waits = open !== undefined && open.waiting.length > 0;
    // A turn that is left open without a question was drained or had a fault. The next process continues it.
    if (journal.failure === undefined && !isAway)
      await store.update(
        id,
        { ...status.change(), status: waits ? "waiting" : open === undefined ? "idle" : "running" },
        journal.next(),
      );
  }
}

/**
 * A session that cannot be opened reports the error, once for each message. If it was in the middle of a
 * turn, it is set aside.
 */
async function failToOpen(
  error: unknown,
  mails: readonly Mail[],
  journal: TaggedJournal,
  { store, onError }: RunnerOptions,
  id: string,
): Promise<undefined> {
  // this is not the session's fault, so the next process to wake it tries again
  if (error instanceof Unavailable) throw error;
  onError?.(error, id);
  const message = error instanceof Error ? error.message : String(error);
  journal.append({ type: "error", message });
  const [first] = mails;
  if (first !== undefined) await journal.drop(first.id, message);
  await journal.commit();
  await store.update(id, { status: first === undefined ? "faulty" : "idle" });
}

/** A journal that accepts no more records has already reported it to the code that runs the turn. */
const ignore = () => undefined;

interface Playing {
  readonly options: RunnerOptions;
  readonly stored: StoredSession;
  readonly opened: OpenedSession;
  readonly journal: TaggedJournal;
  readonly live: LiveQuestions;
  readonly isDraining: () => boolean;
}

/** Takes mail and runs turns until nothing can be done now. True if the session should be opened again. */
async function play(playing: Playing): Promise<boolean> {
  const { options, stored, opened, journal, isDraining } = playing;
  const { session } = opened;
  const { store } = options;
  for (;;) {
    if (isDraining()) return false;
    const mails = await store.mail(stored.id);
    for (const mail of mails) await takeBetweenTurns(mail, playing);
    if (session.openTurn !== undefined && session.openTurn.waiting.length === 0) {
      if (await playTurn(session.resume(), playing)) return true;
      continue;
    }
    if (session.openTurn !== undefined) return false;
    const message = (await store.mail(stored.id)).find(({ kind }) => kind === "message");
    if (message === undefined) return false;
    const refused = await options.refuse?.(stored);
    if (refused !== undefined) {
      await journal.drop(message.id, refused);
      continue;
    }
    journal.tag("turn.started", message.id);
    if (await playTurn(session.send(toContent(message.body)), playing)) return true;
  }
}

/** Handles mail between turns: answers, and requests to end or to undo. Messages are left for the next turn. */
async function takeBetweenTurns(mail: Mail, { opened, journal, stored, options }: Playing): Promise<void> {
  const { session } = opened;
  switch (mail.kind) {
    case "message":
      return;
    case "approval": {
      const { callId, hash, answer } = readApproval(mail.body);
      journal.tag("approval.answered", mail.id);
      const outcome = await session.answer(callId, hash, answer);
      if (outcome !== "taken") await journal.drop(mail.id, `the question is ${outcome}`);
      return;
    }
    case "cancel":
      if (session.openTurn === undefined) return journal.drop(mail.id, "no turn is running");
      journal.tag("turn.ended", mail.id);
      for await (const _event of session.resume({ interrupt: true })) continue;
      return;
    case "undo": {
      const turn = mail.body["turn"];
      const done = await opened.undo?.(typeof turn === "string" ? turn : undefined).catch((error: unknown): Undone => {
        options.onError?.(error, stored.id);
        return { undone: [], conflicts: [error instanceof Error ? error.message : String(error)] };
      });
      for (const one of done?.runs ?? []) session.noteTakenBack({ type: "effects.undone", ...one });
      journal.append({ type: "undo.done", mail: mail.id, ...(done ?? { undone: [], conflicts: [nothingKept] }) });
      await journal.commit();
      return;
    }
    default:
  }
}

const nothingKept = "nothing is kept here that could be taken back";

/** Runs one turn to its end and handles mail as it arrives. True if a message came too late for the turn. */
async function playTurn(
  events: AsyncIterable<SessionEvent>,
  { options, stored, opened, journal, live }: Playing,
): Promise<boolean> {
  const { session } = opened;
  const { store } = options;
  const seen = new Set<number>();
  const look = async () => {
    for (const mail of await store.mail(stored.id)) {
      if (seen.has(mail.id)) continue;
      if (mail.kind === "cancel") {
        journal.tag("turn.ended", mail.id);
        session.interrupt();
      } else if (mail.kind === "message" && mail.body["mode"] === "steer") {
        journal.tag("item.added", mail.id, mail.body["content"]);
        session.steer(toContent(mail.body));
      } else if (mail.kind === "approval") {
        if (!live.answer(readApproval(mail.body))) continue;
        journal.tag("approval.answered", mail.id);
      } else continue;
      seen.add(mail.id);
    }
  };
  let looking = Promise.resolve();
  const lookAgain = () => {
    looking = looking.then(look).catch((error: unknown) => options.onError?.(error, stored.id));
  };
  live.onWaiting = lookAgain;
  const stop = store.watch(({ type }) => {
    if (type === "mail") lookAgain();
  }, stored.id);
  try {
    for await (const _event of events) continue;
  } finally {
    stop();
    await looking;
  }
  await journal.commit();
  return journal.untag() > 0;
}

function toContent({ content }: JsonObject): MessageItem["content"] {
  return content as unknown as MessageItem["content"]; // the content was checked when it was posted
}
