/** What a person said yes to during this conversation. */
export interface Memory {
  has(key: string): boolean;
  add(key: string): void;
}

/** `known` is what a person agreed to before this process began. */
export function createMemory(known: Iterable<string> = []): Memory {
  const keys = new Set(known);
  return { has: (key) => keys.has(key), add: (key) => void keys.add(key) };
}
