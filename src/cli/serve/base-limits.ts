/** How large the archive or the repository may be that a session's folder begins with. */
export interface BaseLimits {
  /** Counted for the archive as it comes, and again for what it unpacks to. */
  readonly bytes: number;
  /** The number of files, links and folders, including folders that only the path of a file names. */
  readonly entries: number;
  /** The length of one path, which limits how deep folders are nested. A longer path could not be removed again. */
  readonly pathBytes: number;
}

/** Four times the files of a folder that follows its session to another worker. */
export const baseLimits: BaseLimits = { bytes: 1024 * 1024 * 1024, entries: 200_000, pathBytes: 2_048 };

/** One entry of a listing. A path that is longer there than on the disk comes with its length. */
type Count = (bytes: number, path: string, pathBytes?: number) => void;

/** Counts what a listing says of its entries, in their order, and throws once that is too much. */
export function createCount(what: string, limits: BaseLimits): Count {
  let sum = 0;
  let entries = 0;
  let last: readonly string[] = [];
  return (bytes, given, length = given.length) => {
    const path = given.split("/").filter((part) => part !== "" && part !== ".");
    // Folders that also contain the previous entry were counted with it, so in an ordered listing each folder is
    // counted once.
    const known = path.findIndex((part, place) => part !== last[place]);
    entries += Math.max(1, known === -1 ? 1 : path.length - known);
    last = path;
    sum += bytes;
    if (sum > limits.bytes) throw new Error(`${what} unpacks to more than ${toSize(limits.bytes)}`);
    if (entries > limits.entries) throw new Error(`${what} unpacks to more than ${toFiles(limits.entries)}`);
    if (length > limits.pathBytes)
      throw new Error(`${what} has a path of more than ${limits.pathBytes.toLocaleString("en")} bytes`);
  };
}

export function toSize(bytes: number): string {
  const gigabytes = bytes / (1024 * 1024 * 1024);
  return gigabytes >= 1 ? `${gigabytes} GB` : `${bytes} bytes`;
}

export function toFiles(entries: number): string {
  return `${entries.toLocaleString("en")} files and folders`;
}
