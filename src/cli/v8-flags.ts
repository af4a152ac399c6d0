/**
 * Flags of V8 that suit a session better than the ones a process starts with. They are set while it runs, because the
 * shell starts the command and nobody else could give them.
 *
 * Compiled code that was kept is only valid under the flags it was made with, and code that loads a module runs once:
 * to take notes of it costs twice as much as running it. Each change is therefore noted, and `withFlagsOfStart` takes
 * all of them back while code is loaded or kept.
 */
import type { Session } from "../session/session.ts";

interface Note {
  /** What each flag that was changed was at the start, and what it is now. */
  readonly changed: Map<string, { readonly atStart: string; readonly now: string }>;
  /** Whether the flags of the start are set at the moment. */
  isTakenBack: boolean;
}

/** The flags belong to the process, and so does this note: the file that starts the command is built apart from the rest. */
function noteOfProcess(): Note {
  const process = globalThis as { [flags]?: Note };
  return (process[flags] ??= { changed: new Map(), isTakenBack: false });
}
const flags = Symbol.for("callgate.v8-flags");

function set(flag: string): void {
  process.getBuiltinModule("node:v8").setFlagsFromString(flag);
}

function change(name: string, now: string, atStart: string): void {
  const [major = 0] = process.versions.node.split(".").map(Number);
  // A V8 that does not know a flag prints that to stderr, so flags are set only on versions on which they were
  // tried.
  if (major > 24) return;
  noteOfProcess().changed.set(name, { atStart, now });
  set(now);
}

/** For the code loaded or kept meanwhile, the flags are those that the process started with. */
export function withFlagsOfStart<T>(act: () => T): T {
  const note = noteOfProcess();
  if (note.isTakenBack) return act(); // a module that loads another
  note.isTakenBack = true;
  for (const { atStart } of note.changed.values()) set(atStart);
  try {
    return act();
  } finally {
    for (const { now } of note.changed.values()) set(now);
    note.isTakenBack = false;
  }
}

/**
 * The flags of a session, set once its first request is sent and what runs only once has run. What is loaded afterwards,
 * while the model answers, is loaded under the flags of the start.
 */
export function setSessionFlags(session: Session): void {
  const stop = session.on((event) => {
    if (event.type !== "request.sent") return;
    stop();
    setImmediate(() => {
      learnAtOnce();
      keepHeapSmall();
    });
  });
}

/**
 * V8 notes which types a function works with only after the function has run several times, and cannot make it faster
 * before that. This suits programs that do many things once. A session does the same few things for each call, so the
 * notes are taken at once.
 */
function learnAtOnce(): void {
  change("feedback", "--no-lazy-feedback-allocation", "--lazy-feedback-allocation");
}

/**
 * A session keeps little in memory but creates many short-lived objects. V8 reacts by letting the space for
 * new objects grow to three times 16 MB, and what such objects hold outside the heap, such as the buffers of
 * a long answer, is freed as late as they are. If the space stays as small as it is at the start, a session of 300
 * calls takes 75 MB instead of 105, and no more processor time. This does not hold for servers, which keep more in
 * memory.
 */
function keepHeapSmall(): void {
  change("heap", "--semi-space-growth-factor=1", "--semi-space-growth-factor=2");
}
