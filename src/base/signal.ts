/** Node fires a longer timer at once, and refuses a signal for one. */
export const longestTimerMs = 2 ** 31 - 1;

/** What a joined signal waits for. It lives as long as the signal does. */
const awaited = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/**
 * Aborts with the first of these. Used instead of `AbortSignal.any`, which alone holds its signals only weakly: a
 * time limit that nothing else refers to is collected with the garbage, and then never ends anything.
 */
export function anySignal(signals: readonly AbortSignal[]): AbortSignal {
  const joined = AbortSignal.any([...signals]);
  awaited.set(joined, signals);
  return joined;
}
