import type { Session } from "../session/session.ts";

/**
 * A session holds little and makes much that is soon of no use: V8 answers that by letting the space for new objects
 * grow to three times 16 MB, and with it waits what lives outside its heap, such as the buffers of a long answer. At
 * the size it has at the start a session of 300 calls takes 77 MB instead of 105, and no more processor time. For
 * servers, which hold more, this is not so.
 *
 * Compiled code that was kept is only valid under the flags it was made with: this comes after everything has been
 * loaded, or with the first long answer, and `kept-code.ts` takes it back before code is kept.
 */
export function keepHeapSmall(): void {
  const [major = 0] = process.versions.node.split(".").map(Number);
  // A V8 that does not know the flag says so on stderr: only where it was tried.
  if (major > 24) return;
  process.getBuiltinModule("node:v8").setFlagsFromString("--semi-space-growth-factor=1");
}

/** An answer that is longer than this is worth compiling the rest again. */
const longAnswer = 64 * 1024;

/** A long answer may come before everything else has been loaded. */
export function keepHeapSmallInLongAnswers(session: Session): void {
  let length = 0;
  const stop = session.on((event) => {
    if (event.type !== "item.delta") return;
    length += event.delta.length;
    if (length < longAnswer) return;
    stop();
    keepHeapSmall();
  });
}
