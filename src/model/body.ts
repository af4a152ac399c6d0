import type { Json, JsonObject } from "../base/json.ts";

/** A request body as bytes, in pieces to be sent one after the other. */
export type BodyWriter = (body: JsonObject) => readonly Uint8Array[];

interface Written {
  readonly items: readonly Json[];
  /** Where each item's bytes end. */
  readonly ends: readonly number[];
  readonly bytes: Buffer;
}

/**
 * A history only grows, and codecs return the same object for an item that has not changed. The bytes
 * made for the previous request are therefore sent again, so that a request costs only what is new in
 * it, however long the session is.
 */
export function createBodyWriter(): BodyWriter {
  let written: Written = { items: [], ends: [], bytes: Buffer.alloc(0) };
  const bytesOf = createStillLists();
  return (body) => {
    const entries = Object.entries(body);
    const still = entries.map(([, value]) => (Array.isArray(value) ? bytesOf(value) : undefined));
    const growing = longestList(entries.map(([, value], index) => (still[index] === undefined ? value : undefined)));
    const pieces: Uint8Array[] = [];
    let text = "{";
    for (const [index, [key, value]] of entries.entries()) {
      text += `${index === 0 ? "" : ","}${JSON.stringify(key)}:`;
      const known = still[index];
      if (known !== undefined) pieces.push(Buffer.from(text), known);
      else if (index === growing) {
        written = write(value as readonly Json[], written); // longestList considers nothing else
        pieces.push(Buffer.from(`${text}[`), written.bytes.subarray(0, written.ends.at(-1)));
      }
      if (known !== undefined) text = "";
      else text = index === growing ? "]" : text + JSON.stringify(value);
    }
    return [...pieces, Buffer.from(`${text}}`)];
  };
}

/**
 * Lists that come again unchanged, such as the tools of a conversation. The bytes of a list that is
 * seen for the second time are kept as long as somebody holds the list.
 */
function createStillLists(): (list: readonly Json[]) => Buffer | undefined {
  const seen = new WeakMap<readonly Json[], Buffer | "once">();
  return (list) => {
    const known = seen.get(list);
    if (known === undefined) seen.set(list, "once");
    if (known !== "once") return known;
    const bytes = Buffer.from(JSON.stringify(list));
    seen.set(list, bytes);
    return bytes;
  };
}

function longestList(values: readonly (Json | undefined)[]): number {
  let found = -1;
  let length = 0;
  for (const [index, value] of values.entries()) {
    if (!Array.isArray(value) || value.length <= length) continue;
    found = index;
    length = value.length;
  }
  return found;
}

function write(items: readonly Json[], before: Written): Written {
  let same = 0;
  while (same < items.length && items[same] === before.items[same]) same++;
  const ends = before.ends.slice(0, same);
  const kept = ends.at(-1) ?? 0;
  const added = items.slice(same).map((item, index) => `${same + index === 0 ? "" : ","}${JSON.stringify(item)}`);
  const sizes = added.map((text) => Buffer.byteLength(text));
  const needed = sizes.reduce((sum, size) => sum + size, kept);
  // The bytes after the kept part may still be on their way to the last server, so they are overwritten only if they
  // were never sent.
  const fits = same === before.items.length && needed <= before.bytes.length;
  const bytes = fits ? before.bytes : Buffer.allocUnsafe(needed * 2);
  if (!fits) before.bytes.copy(bytes, 0, 0, kept);
  let end = kept;
  for (const [index, text] of added.entries()) {
    bytes.write(text, end);
    ends.push((end += sizes[index]!));
  }
  return { items, ends, bytes };
}
