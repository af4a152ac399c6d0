/**
 * Text that comes in small pieces and takes no more memory than it holds. A string made with `+=`
 * keeps every piece, with a node for each, until somebody reads it: an answer of 5 MB would take 18.
 */
export interface GrowingText {
  readonly length: number;
  add(piece: string): void;
  toString(): string;
}

/** Pieces are joined in blocks of about this many characters. */
const blockLength = 16_384;
/** A piece of this length is kept as it is, so that everybody who receives the same answer shares it. */
const wholeLength = 1_024;

export function createGrowingText(): GrowingText {
  let blocks: string[] = [];
  let pieces: string[] = [];
  let loose = 0;
  let length = 0;

  function join(): void {
    blocks.push(pieces.join(""));
    pieces = [];
    loose = 0;
  }

  return {
    get length() {
      return length;
    },
    add(piece) {
      if (piece === "") return;
      length += piece.length;
      if (piece.length >= wholeLength) {
        if (loose > 0) join();
        blocks.push(piece);
        return;
      }
      pieces.push(piece);
      loose += piece.length;
      if (loose >= blockLength) join();
    },
    toString() {
      if (loose > 0) join();
      if (blocks.length > 1) blocks = [blocks.join("")];
      return blocks[0] ?? "";
    },
  };
}
