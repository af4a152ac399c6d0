/**
 * What the gateway must remember for clients that cannot carry it themselves: responses that a later
 * request refers to, and the opaque state of thoughts for clients whose API has no place for it. It is
 * limited in number and bytes, and the oldest goes first. With a file it survives a restart.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isObject, type Json, parseJson } from "../base/json.ts";

export interface StateStore {
  get(key: string): Json | undefined;
  put(key: string, value: Json): void;
  delete(key: string): boolean;
}

export interface StateOptions {
  readonly maxEntries?: number;
  readonly maxBytes?: number;
  /** The file, as JSON lines with the newest last. Left out: in memory only. */
  readonly file?: string;
}

interface Entry {
  readonly value: Json;
  readonly bytes: number;
}

export function createStateStore(options: StateOptions = {}): StateStore {
  const { maxEntries = 10_000, maxBytes = 64 * 1024 * 1024, file } = options;
  const entries = new Map<string, Entry>();
  let bytes = 0;
  let written = 0;

  const forget = (key: string): boolean => {
    const entry = entries.get(key);
    if (entry === undefined) return false;
    bytes -= entry.bytes;
    return entries.delete(key);
  };
  const remember = (key: string, value: Json, size: number) => {
    forget(key);
    entries.set(key, { value, bytes: size });
    bytes += size;
    for (const oldest of entries.keys()) {
      if (entries.size <= maxEntries && bytes <= maxBytes) break;
      forget(oldest);
    }
  };
  const write = (line: string) => {
    if (file === undefined) return;
    appendFileSync(file, line, { mode: 0o600 });
    written += line.length;
    if (written > 2 * maxBytes) rewrite();
  };
  /** The file holds only what is still known. */
  const rewrite = () => {
    if (file === undefined) return;
    const lines = [...entries].map(([key, { value }]) => `${JSON.stringify([key, value])}\n`).join("");
    writeFileSync(`${file}.new`, lines, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    written = lines.length;
  };

  if (file !== undefined) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    for (const [key, value] of readEntries(file)) {
      if (value === null) forget(key);
      else remember(key, value, JSON.stringify(value).length + key.length);
    }
    rewrite();
  }
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      // Used again, so it will be dropped last.
      entries.delete(key);
      entries.set(key, entry);
      return entry.value;
    },
    put(key, value) {
      const line = `${JSON.stringify([key, value])}\n`;
      if (line.length > maxBytes) return;
      remember(key, value, line.length);
      write(line);
    },
    delete(key) {
      const was = forget(key);
      if (was) write(`${JSON.stringify([key, null])}\n`);
      return was;
    },
  };
}

/** The entries of one client. An id that another client learned or guessed means nothing here. */
export function stateOf(state: StateStore, client: string): StateStore {
  const own = (key: string) => `${client}/${key}`;
  return {
    get: (key) => state.get(own(key)),
    put: (key, value) => state.put(own(key), value),
    delete: (key) => state.delete(own(key)),
  };
}

/** A torn last line, the sign of a kill, is ignored. */
function readEntries(file: string): readonly (readonly [string, Json])[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line): (readonly [string, Json])[] => {
      const parsed = parseJson(line);
      if (!parsed.ok || !Array.isArray(parsed.value)) return [];
      const [key, value] = parsed.value;
      return typeof key === "string" && value !== undefined ? [[key, value]] : [];
    });
}

/** The items of a stored list. Empty if the entry is of another kind. */
export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

export function fieldOf(value: Json | undefined, name: string): Json | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
