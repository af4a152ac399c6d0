/** Which choice of a Chat answer is followed: number 0, or the lowest there is where no chunk ever has a 0. */
import { number, objects, type Raw } from "../raw.ts";

export interface Choices {
  /** The followed choice of a chunk. Servers asked for several send them interleaved, and only one is an answer. */
  take(chunk: Raw): Raw | undefined;
  /** The pieces of the answer that was passed over while a choice 0 could still come. */
  end(): readonly Raw[];
}

export function createChoices(): Choices {
  const others = new Map<number, Raw[]>();
  let hasFirst = false;

  function keep(choice: Raw): void {
    const index = number(choice["index"]) ?? Infinity;
    const known = others.get(index);
    if (known === undefined) others.set(index, [choice]);
    else known.push(choice);
  }

  return {
    take(chunk) {
      const choices = objects(chunk["choices"]);
      const first = choices.find((choice) => (choice["index"] ?? 0) === 0);
      if (first === undefined && !hasFirst) choices.forEach(keep);
      if (first === undefined || hasFirst) return first;
      hasFirst = true;
      others.clear();
      return first;
    },
    end: () => others.get(Math.min(...others.keys())) ?? [],
  };
}
