/** The list of changes and the budget of one normalisation. */
export interface Change {
  /** JSON pointer into the schema as it came; empty for its root. */
  readonly path: string;
  readonly what: string;
}

type Cost = "read" | "write" | "inline";

export interface Trail {
  change(path: string, what: string): void;
  /**
   * False if reading or writing the schema, or writing references in place, has cost more than any real
   * schema would.
   */
  spend(on: Cost): boolean;
  /** True once nothing more may be spent on it. */
  spent(on: Cost): boolean;
  changes(): readonly Change[];
}

/** Real schemas have some hundred nodes; the largest of 1,564 has a few thousand. */
const mostNodes = 20_000;
/** How many references are written in place: enough for every schema that does not contain itself. */
const mostInlined = 1000;
const mostChanges = 1000;
const longestPath = 400;

export function createTrail(): Trail {
  const changes = new Map<string, Change>();
  const left = { read: mostNodes, write: mostNodes, inline: mostInlined };
  let unsaid = 0;
  return {
    change(path, what) {
      const key = `${path}\0${what}`;
      if (changes.has(key)) return;
      if (changes.size < mostChanges) changes.set(key, { path: path.slice(0, longestPath), what });
      else unsaid++;
    },
    spend: (on) => left[on]-- > 0,
    spent: (on) => left[on] <= 0,
    changes: () =>
      unsaid === 0 ? [...changes.values()] : [...changes.values(), { path: "", what: `and ${unsaid} more changes` }],
  };
}
