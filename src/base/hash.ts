/** Hashes for short names and ids, the same in every run; never for secrets. */

/** This many hex digits, which depend on all of the text. */
export function hashHex(text: string, digits: number): string {
  let hex = "";
  for (let lane = 0; hex.length < digits; lane++) hex += hash32(text, lane).toString(16).padStart(8, "0");
  return hex.slice(0, digits);
}

/** FNV-1a over UTF-16 units with a final mix. Each lane starts with another value, so lanes are independent. */
function hash32(text: string, lane: number): number {
  let hash = 0x811c9dc5 ^ Math.imul(lane, 0x9e3779b1);
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The id itself if it has exactly this many letters and digits, otherwise as many that depend on all of it. */
export function exactId(id: string, length: number): string {
  if (id.length === length && /^[a-zA-Z0-9]+$/.test(id)) return id;
  // Base 36 makes better use of the few characters.
  const digits = hashHex(id, Math.ceil(length * 1.5)).match(/.{1,8}/g) ?? [];
  const text = digits.map((hex) => Number.parseInt(hex, 16).toString(36).padStart(6, "0")).join("");
  return text.slice(0, length).padEnd(length, "0");
}
