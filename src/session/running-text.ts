import type { CallEvent } from "../spec/stages.ts";

/** How much of a running call's output is shown: its last lines. */
const shownChars = 16_000;

/** What a running call has printed so far, as text: its output and its progress. Undefined if an event adds nothing. */
export function createRunningText(): { add(event: CallEvent): string | undefined } {
  let shown = "";
  return {
    add(event) {
      if (event.type === "exec.output") shown += event.text;
      else if (event.type === "call.progress") {
        const { progress } = event;
        const words = typeof progress === "string" ? progress : progress.message;
        if (words === undefined) return undefined;
        shown += shown === "" || shown.endsWith("\n") ? `${words}\n` : `\n${words}\n`;
      } else return undefined;
      if (shown.length > shownChars) shown = shown.slice(-shownChars);
      return shown;
    },
  };
}
