/** Indexes for the items of one answer: the one its server wants where that is free, else the next after all others. */
export interface Places {
  claim(wanted?: number): number;
}

/** Indexes beyond this are a server's mistake; they only say 'somewhere at the end'. */
const highest = 100_000;

export function createPlaces(): Places {
  const taken = new Set<number>();
  let next = 0;
  return {
    claim(wanted) {
      const place = wanted !== undefined && wanted < highest && !taken.has(wanted) ? wanted : next;
      taken.add(place);
      next = Math.max(next, place + 1);
      return place;
    },
  };
}
