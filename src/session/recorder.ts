import type { Ended } from "../spec/call.ts";
import type { ApprovalRequest, Recorder } from "../spec/stages.ts";
import type { Conversation } from "../router/conversation.ts";
import type { SessionEvent, TurnEnded } from "./events.ts";
import type { JournalRecord } from "../store/journal.ts";
import type { SessionJournal } from "./session-options.ts";

/** Writes a session's events to its journal: repeats left out, small pieces joined. */
export interface SessionRecorder extends Recorder {
  write(event: SessionEvent): void;
  flush(): void;
  /** Resolves when everything written so far is kept; rejects, now and ever after, where the journal took no more. */
  commit(): Promise<void>;
  /** Why the journal takes no more: another process has the session now, or the disk is full. */
  readonly failure: Error | undefined;
}

/** What of the conversation's state is recorded with the end of a call, so that another process can go on with it. */
export type Remembered = Pick<Conversation, "takeFilesRead" | "openTerminals">;

export interface RecorderOptions {
  readonly now?: () => number;
  readonly remembered?: Remembered;
  /** Questions are answered from the journal: they are kept with the diff that is shown. */
  readonly keepDiffs?: boolean;
  /** Names the state of the folder after a call that may have changed it. */
  readonly keepFolder?: () => Promise<string | undefined>;
}

/** Live output kept per call: enough to look at; the whole is in the result or its file. */
const maxOutputChars = 64 * 1024;
/** What a kill may take of an answer that is being given. A finished one is in its item, and nowhere else. */
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
  /** A journal that has refused one record gets no more: what follows would stand in the wrong place. */
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

  /** The item that has grown is there as a whole, and is recorded when it joins the history. */
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
        // Whoever goes on after a kill judges by this what the call can have done.
        ...(mutates && keepFolder !== undefined ? { write: grant.write, network: grant.network } : {}),
        ruling,
      });
      if (mutates) changing.add(id);
      await commit();
      // What changes something must be known to have begun, even after a power cut; a look can be lost.
      if (mutates) await journal?.sync?.();
    },
    async ended(ended) {
      flush();
      outputChars.delete(ended.id);
      const workspace = changing.delete(ended.id) ? await keepFolder?.() : undefined;
      append({
        type: "call.ended",
        call: withoutRepeats(ended),
        ...stateNow(),
        ...(workspace === undefined ? {} : { workspace }),
      });
    },
  };
}

/** The files seen since the last call, and the programs left running where that has changed. */
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

/** Said by another record: item.added has the whole item, call.started the permission, call.ended the result. */
function isRepeat(event: SessionEvent): boolean {
  switch (event.type) {
    case "item.added":
      return event.item.type === "result";
    case "item.started":
    case "item.done":
    case "call.asked":
    case "call.permitted":
    case "call.ended":
    // Whole files, secrets among them, have no business in a journal: the turn's diff and the undo log are enough.
    case "file.changed":
      return true;
    default:
      return false;
  }
}

/** A diff quotes what files held before: it was for the person's eyes. */
function withoutDiff({ diff: _diff, ...rest }: ApprovalRequest): Omit<ApprovalRequest, "diff"> {
  return rest;
}

/** The message above it in the journal has the words. */
function withoutText({ text: _text, ...rest }: TurnEnded): Omit<TurnEnded, "text"> {
  return rest;
}

/**
 * The call item above it in the journal has the arguments, the record of its start the input and what was granted. A
 * call that another call made is no item: where it was refused, this record alone says what was asked for.
 */
function withoutRepeats(ended: Ended): Partial<Ended> {
  const { arguments: asked, input: _input, grant, ...rest } = ended;
  return ended.parent !== undefined && grant === undefined ? { ...rest, arguments: asked } : rest;
}
