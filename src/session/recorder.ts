import type { Ended } from "../spec/call.ts";
import type { ApprovalRequest, Recorder } from "../spec/stages.ts";
import type { Conversation } from "../router/conversation.ts";
import type { SessionEvent, TurnEnded } from "./events.ts";
import type { JournalRecord } from "../store/journal.ts";
import { Unavailable } from "../store/session-store.ts";
import type { SessionJournal } from "./session-options.ts";

/** Writes a session's events to its journal, without repetitions and with small pieces joined. */
export interface SessionRecorder extends Recorder {
  write(event: SessionEvent): void;
  flush(): void;
  /**
   * Resolves when everything written so far is kept. Rejects, now and from then on, if the journal
   * accepted no more.
   */
  commit(): Promise<void>;
  /** Why the journal accepts no more: another process has the session now, or the disk is full. */
  readonly failure: Error | undefined;
}

/**
 * Which parts of the conversation's state are recorded with the end of a call, so that another process
 * can continue it.
 */
export type Remembered = Pick<Conversation, "takeFilesRead" | "openTerminals">;

export interface RecorderOptions {
  readonly now?: () => number;
  readonly remembered?: Remembered;
  /** Questions are answered from the journal, so they are stored with the diff that is shown. */
  readonly keepDiffs?: boolean;
  /** Names the state of the folder after a call that may have changed it. */
  readonly keepFolder?: () => Promise<string | undefined>;
}

/** How much live output is kept per call. It is enough to look at; the whole is in the result or its file. */
const maxOutputChars = 64 * 1024;
/** How much of an unfinished answer a kill may lose. A finished answer is stored as its item. */
const maxUnwrittenMs = 1_000;

interface Joined {
  readonly key: string;
  readonly event: JoinableEvent;
  readonly pieces: string[];
  readonly since: number;
}

// oxlint-disable-next-line max-lines-per-function -- one recorder: its functions share what is being gathered
export function createSessionRecorder(
  journal: SessionJournal | undefined,
  { now = Date.now, remembered, keepDiffs = false, keepFolder }: RecorderOptions = {},
): SessionRecorder {
  let failure: Error | undefined;
  let kept: Promise<unknown> | undefined;
  const fail = (error: unknown) => {
    failure ??= error instanceof Error ? error : new Error(String(error));
  };
  /**
   * If the store cannot be reached, the turn does not end with an error. It stays open for whichever process reaches
   * the store again.
   */
  const unlessAway = (error: unknown): never => {
    if (error instanceof Unavailable) fail(error);
    throw error;
  };
  /**
   * After a journal has refused one record it gets no more, because later records would then stand in the wrong
   * place.
   */
  const append = (record: JournalRecord) => {
    if (failure !== undefined) return;
    try {
      const written = journal?.append(record);
      if (written !== undefined) kept = Promise.all([kept, written]).catch(fail);
    } catch (error) {
      fail(error);
      throw error;
    }
  };
  const commit = async () => {
    flush();
    await kept;
    kept = undefined;
    if (failure === undefined) await journal?.commit?.().catch(fail);
    if (failure !== undefined) throw failure;
  };
  const stateNow = createStateNotes(remembered);
  let open: Joined | undefined;
  const outputChars = new Map<string, number>();
  const changing = new Set<string>();

  const flush = () => {
    if (!open) return;
    const { event, pieces } = open;
    open = undefined;
    append(event.type === "item.delta" ? { ...event, delta: pieces.join("") } : { ...event, text: pieces.join("") });
  };

  const join = (key: string, event: JoinableEvent, piece: string) => {
    if (open && (open.key !== key || now() - open.since > maxUnwrittenMs)) flush();
    open ??= { key, event, pieces: [], since: now() };
    open.pieces.push(piece);
  };

  /** The item is complete and will be recorded when it joins the history, so its pieces are no longer needed. */
  const forget = (index: number) => {
    if (open?.event.type === "item.delta" && open.event.index === index) open = undefined;
  };

  const write = (event: SessionEvent) => {
    if (journal === undefined) return;
    if (event.type === "item.delta")
      return join(`${event.index}:${event.field}:${event.part ?? 0}`, event, event.delta);
    if (event.type === "exec.output") {
      const seen = outputChars.get(event.id) ?? 0;
      outputChars.set(event.id, seen + event.text.length);
      if (event.omittedBytes !== undefined) {
        flush();
        append({ ...event });
      } else if (seen < maxOutputChars) join(`${event.id}:${event.stream}`, event, event.text);
      return;
    }
    if (event.type === "item.done") forget(event.index);
    if (isRepeat(event)) return;
    flush();
    append(
      event.type === "turn.ended"
        ? withoutText(event)
        : event.type === "approval.asked" && !keepDiffs
          ? { ...event, request: withoutDiff(event.request) }
          : { ...event },
    );
    // Whoever is asked may look at the session, or end its process, at once.
    if (event.type === "approval.asked") void journal.commit?.().catch(fail);
  };

  return {
    write,
    flush,
    commit,
    get failure() {
      return failure;
    },
    async started(permitted) {
      flush();
      const { id, parent, tool, input, grant, ruling, mutates } = permitted;
      append({
        type: "call.started",
        id,
        ...(parent === undefined ? {} : { parent }),
        tool: tool.name,
        input,
        mutates,
        policy: grant.policy,
        confined: grant.confined,
        // After a kill, this tells what the call can have done.
        ...(mutates && keepFolder !== undefined ? { write: grant.write, network: grant.network } : {}),
        ruling,
      });
      if (mutates) changing.add(id);
      await commit();
      // A call that changes something must be known to have begun, even after a power cut. A call that only reads may
      // be lost.
      if (mutates) await journal?.sync?.();
    },
    async decided() {
      await commit();
      await journal?.sync?.();
    },
    async ended(ended) {
      flush();
      outputChars.delete(ended.id);
      const workspace = changing.delete(ended.id) ? await keepFolder?.().catch(unlessAway) : undefined;
      append({
        type: "call.ended",
        call: withoutRepeats(ended),
        ...stateNow(),
        ...(workspace === undefined ? {} : { workspace }),
      });
    },
  };
}

/** The files seen since the last call, and the programs left running if that has changed. */
function createStateNotes(remembered: Remembered | undefined) {
  let terminals = "[]";
  return () => {
    const files = remembered?.takeFilesRead() ?? [];
    const running = remembered?.openTerminals() ?? [];
    const isChanged = JSON.stringify(running) !== terminals;
    terminals = JSON.stringify(running);
    return { ...(files.length === 0 ? {} : { files }), ...(isChanged ? { terminals: running } : {}) };
  };
}

type JoinableEvent = Extract<SessionEvent, { type: "item.delta" | "exec.output" }>;

/** Another record says the same: item.added has the whole item, call.started the permission, call.ended the result. */
function isRepeat(event: SessionEvent): boolean {
  switch (event.type) {
    case "item.added":
      return event.item.type === "result";
    case "item.started":
    case "item.done":
    case "call.asked":
    case "call.permitted":
    case "call.ended":
    // Whole files, possibly with secrets, do not belong in a journal. The turn's diff and the undo log are enough.
    case "file.changed":
      return true;
    default:
      return false;
  }
}

/** A diff quotes the earlier content of files, and was only meant for the person who was asked. */
function withoutDiff({ diff: _diff, ...rest }: ApprovalRequest): Omit<ApprovalRequest, "diff"> {
  return rest;
}

/** The message above it in the journal has the text. */
function withoutText({ text: _text, ...rest }: TurnEnded): Omit<TurnEnded, "text"> {
  return rest;
}

/**
 * The call item above it in the journal has the arguments, and the record of its start has the input
 * and the grant. A call that another call made is not an item: if it was refused, only this record
 * says what was asked for.
 */
function withoutRepeats(ended: Ended): Partial<Ended> {
  const { arguments: asked, input: _input, grant, ...rest } = ended;
  return ended.parent !== undefined && grant === undefined ? { ...rest, arguments: asked } : rest;
}
