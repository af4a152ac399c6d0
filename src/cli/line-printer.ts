import { jsonPieces } from "../base/json-pieces.ts";

const maxGatheredChars = 64 * 1024;

/**
 * JSON lines for programs, collected and written once per turn of the event loop. A session has many
 * small events, and a system call for each would be a tenth of its work. The values become JSON only
 * then, when the next request to the model is on its way, so they must not change after they were printed.
 */
export function createLinePrinter(): { print(value: object): void; flush(): void } {
  let values: object[] = [];
  const flush = () => {
    const ready = values;
    values = [];
    let lines = "";
    for (const value of ready) {
      for (const piece of jsonPieces(value)) {
        // Added to what is gathered, a piece of a long text would be copied once more.
        if (lines.length + piece.length > maxGatheredChars && lines !== "") {
          process.stdout.write(lines);
          lines = "";
        }
        if (piece.length < maxGatheredChars / 2) lines += piece;
        else process.stdout.write(piece);
      }
      lines += "\n";
    }
    if (lines !== "") process.stdout.write(lines);
  };
  return {
    print(value) {
      if (values.push(value) === 1) setImmediate(flush);
    },
    flush,
  };
}
