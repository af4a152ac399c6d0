/** The gateway's own keys, one per client. Only their hashes are stored; the key itself is shown once. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isObject, parseJson } from "../base/json.ts";

/** A key of a client, as it is kept: only its hash. */
export interface ClientKey {
  readonly name: string;
  readonly hash: string;
  readonly createdAt: string;
}

/** The keys that clients of a gateway may use. */
export interface KeyFile {
  list(): readonly ClientKey[];
  /** Returns the new key, which cannot be shown again. */
  add(name: string): string;
  remove(name: string): boolean;
}

export function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** A new random key for a client of the gateway. */
export function createKey(): string {
  return `cgk_${randomBytes(24).toString("base64url")}`;
}

/** The name of the key that was given, compared in constant time. A key without a name is named after its hash. */
export function findKey(keys: readonly (ClientKey | string)[], given: string): string | undefined {
  if (given === "") return undefined; // also if an empty text is among the keys, as an unset variable may be
  const givenHash = hashKey(given);
  let found: string | undefined;
  for (const key of keys) {
    const { name, hash } = typeof key === "string" ? unnamed(key) : key;
    if (timingSafeEqual(Buffer.from(hash, "hex"), Buffer.from(givenHash, "hex"))) found = name;
  }
  return found;
}

function unnamed(key: string): Pick<ClientKey, "name" | "hash"> {
  const hash = hashKey(key);
  return { name: `key-${hash.slice(0, 8)}`, hash };
}

/** The keys in this file, which is created when the first one is added. */
export function openKeyFile(path: string, now: () => Date = () => new Date()): KeyFile {
  const read = (): readonly ClientKey[] => {
    if (!existsSync(path)) return [];
    const parsed = parseJson(readFileSync(path, "utf8"));
    if (!parsed.ok || !Array.isArray(parsed.value))
      throw new Error(`${path} is not a list of keys; move it away to start anew`);
    return parsed.value.flatMap((entry): readonly ClientKey[] => {
      if (!isObject(entry)) return [];
      const { name, hash, createdAt } = entry;
      return typeof name === "string" && typeof hash === "string" && /^[0-9a-f]{64}$/.test(hash)
        ? [{ name, hash, createdAt: String(createdAt) }]
        : [];
    });
  };
  const write = (keys: readonly ClientKey[]) => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  return {
    list: read,
    add(name) {
      const keys = read();
      if (keys.some((key) => key.name === name)) throw new TypeError(`there is already a key '${name}'`);
      const key = createKey();
      write([...keys, { name, hash: hashKey(key), createdAt: now().toISOString() }]);
      return key;
    },
    remove(name) {
      const keys = read();
      const rest = keys.filter((key) => key.name !== name);
      if (rest.length === keys.length) return false;
      write(rest);
      return true;
    },
  };
}
