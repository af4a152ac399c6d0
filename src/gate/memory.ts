/** What a person said yes to during this conversation. */
export interface Memory {
  has(key: string): boolean;
  add(key: string): void;
}

export function createMemory(): Memory {
  const keys = new Set<string>();
  return { has: (key) => keys.has(key), add: (key) => void keys.add(key) };
}
