/** A long text that grows by small pieces. */
export interface GrowingText {
  readonly length: number;
  add(piece: string): void;
  text(): string;
}

const block = 8192;

/**
 * Pieces are put together block by block: one string that only grows is, inside the engine, a tree with
 * a node per piece, and the garbage collector walks half a million of them for ten megabytes.
 */
export function createGrowingText(): GrowingText {
  let parts: string[] = [];
  let tail = "";
  let length = 0;
  return {
    get length() {
      return length;
    },
    add(piece) {
      length += piece.length;
      tail += piece;
      if (tail.length < block) return;
      // Looking at a character makes the engine lay the tree out flat.
      if (tail.charCodeAt(0) >= 0) parts.push(tail);
      tail = "";
    },
    text() {
      const whole = parts.length === 0 ? tail : parts.join("") + tail;
      parts = [whole];
      tail = "";
      return whole;
    },
  };
}
