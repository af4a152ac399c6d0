/** What a model's adapter notes beside the answer, as sentences for the operator. */
import { describeMs } from "../base/text.ts";
import type { ModelNote } from "../spec/model.ts";

export type DroppedNote = Extract<ModelNote, { readonly type: "tool.dropped" }>;

/** One sentence for each reason, however many tools it left out. */
export function describeDropped(dropped: readonly DroppedNote[]): readonly string[] {
  const reasons = [...new Set(dropped.map(({ reason }) => reason))];
  return reasons.map((reason) => {
    const names = dropped.filter((note) => note.reason === reason).map(({ name }) => name);
    const shown =
      names.length > 10 ? `${names.slice(0, 10).join(", ")} and ${names.length - 10} more` : names.join(", ");
    return names.length === 1
      ? `The tool ${shown} is not offered: ${reason}`
      : `${names.length} tools are not offered (${shown}): ${reason}`;
  });
}

export function describeNote(note: Exclude<ModelNote, DroppedNote>): string {
  return `${note.reason.replace(/[^.]$/, "$&.")} Asking again in ${describeMs(note.waitMs)}.`;
}
