/** What a held command did, for the journal, for whoever follows the call or decides about it, and for the model. */
import type { Ended, Ran } from "../spec/call.ts";
import type { Effect, EffectLine, Effects, Settled } from "../spec/effects.ts";

/** The longest list in an event or a journal. The run's own folder holds all of it. */
const maxEntries = 200;

export interface EffectsSummary {
  readonly counts: Readonly<Record<Effect["kind"], number>>;
  readonly entries: readonly Effect[];
  readonly conflicts: readonly string[];
}

/** Deletions are never cut. */
export function summary({ list }: Effects): EffectsSummary {
  const counts = { added: 0, changed: 0, removed: 0, mode: 0 };
  for (const { kind } of list) counts[kind] += 1;
  return { counts, entries: cut(list), conflicts: list.filter(({ conflict }) => conflict).map(({ path }) => path) };
}

function cut(list: readonly Effect[]): readonly Effect[] {
  if (list.length <= maxEntries) return list;
  const removed = list.filter(({ kind }) => kind === "removed");
  return [...removed, ...list.filter(({ kind }) => kind !== "removed").slice(0, maxEntries)];
}

export function heldPart({ effects, settled }: Ran): Pick<Ended, "effects"> {
  if (effects === undefined || settled === undefined) return {};
  const { run, kept, conflicts } = settled;
  return { effects: { run, kept, conflicts, list: cut(effects.list) } };
}

/** What the model must know besides the output: which of its changes were not kept. */
export function remarksOn({ kept, conflicts }: Settled, { list, direct }: Effects): readonly string[] {
  const names = (paths: readonly string[]) => paths.slice(0, 20).join(", ") + (paths.length > 20 ? ", …" : "");
  return [
    ...(kept === "part"
      ? ["Only a part of what the command changed was kept; look at the files before you go on."]
      : []),
    ...(kept === "none" && list.length > 0 ? ["Nothing of what the command changed was kept."] : []),
    ...(direct === undefined
      ? []
      : [`It ran with its writes held back, and ${direct}. Do it another way (mv copies instead), or tell the user.`]),
    ...(conflicts.length > 0 ? [`Not kept, because somebody else changed it meanwhile: ${names(conflicts)}.`] : []),
  ];
}

/** The paths of the lines with these numbers. Undefined for a number that does not exist. */
export function chosenPaths(words: readonly string[], lines: readonly EffectLine[]): readonly string[] | undefined {
  const chosen = new Set<number>();
  for (const word of words) {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(word) ?? [];
    if (from === undefined || Number(from) < 1 || Number(to) > lines.length || Number(from) > Number(to))
      return undefined;
    for (let at = Number(from); at <= Number(to); at++) chosen.add(at - 1);
  }
  return chosen.size === 0 ? undefined : [...chosen].flatMap((at) => lines[at]?.paths ?? []);
}

/** Tells the person who kept a run that older runs had to be dropped to make room. */
export function prunedWords(runs: readonly string[]): string {
  const which = runs.length === 1 ? `the older run ${runs[0]}` : `${runs.length} older runs`;
  return `${which} can no longer be taken back: there is room for fifty runs and two gigabytes`;
}
