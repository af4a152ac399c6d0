import { jsonPieces } from "../base/json-pieces.ts";

const maxGatheredChars = 64 * 1024;

/**
 * JSON lines for programs, collected and written once per turn of the event loop. A session has many
 * small events, and a system call for each would be a tenth of its work.
 */
export function createLinePrinter(): { print(value: object): void; flush(): void } {
  let lines = "";
  let scheduled = false;
  const flush = () => {
    scheduled = false;
    if (lines !== "") process.stdout.write(lines);
    lines = "";
  };
  return {
    print(value) {
      for (const piece of jsonPieces(value)) {
        lines += piece;
        if (lines.length > maxGatheredChars) flush();
      }
      lines += "\n";
      if (scheduled) return;
      scheduled = true;
      setImmediate(flush);
    },
    flush,
  };
}
