/**
 * Listeners to all sessions, or to one. A change is reported only to those who listen to that session, so
 * others cost nothing.
 */
import type { StoreChange } from "./session-store.ts";

type Listener = (change: StoreChange) => void;

export interface Listeners {
  tell(change: StoreChange): void;
  watch(listener: Listener, id?: string): () => void;
  readonly isEmpty: boolean;
  clear(): void;
}

export function createListeners(): Listeners {
  const ofAll = new Set<Listener>();
  const ofOne = new Map<string, Set<Listener>>();
  return {
    tell(change) {
      for (const listener of ofAll) listener(change);
      for (const listener of ofOne.get(change.id) ?? []) listener(change);
    },
    watch(listener, id) {
      if (id === undefined) {
        ofAll.add(listener);
        return () => void ofAll.delete(listener);
      }
      const own = ofOne.get(id) ?? new Set();
      ofOne.set(id, own.add(listener));
      return () => {
        own.delete(listener);
        if (own.size === 0 && ofOne.get(id) === own) ofOne.delete(id);
      };
    },
    get isEmpty() {
      return ofAll.size === 0 && ofOne.size === 0;
    },
    clear() {
      ofAll.clear();
      ofOne.clear();
    },
  };
}
