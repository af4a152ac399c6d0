/** The sessions on disk: found, listed newest first, and opened by the beginning of an id. */
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { isObject } from "../base/json.ts";
import type { StoredSession } from "./session-store.ts";

/** One session as a list shows it. */
export interface SessionSummary {
  readonly id: string;
  readonly cwd: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly title: string;
  readonly path: string;
  /** The program whose conversation it is, if the gateway recorded it. */
  readonly client?: string;
}

/** An id for a new session. Ids sort by time, and are unique by chance: `20261115-215501-3f9a1c`. */
export function createSessionId(now: Date, random: () => number = Math.random): string {
  // Not `toISOString`, whose first use in a process reads the system's time zone.
  const day = [now.getUTCFullYear(), now.getUTCMonth() + 1, now.getUTCDate()];
  const time = [now.getUTCHours(), now.getUTCMinutes(), now.getUTCSeconds()];
  const stamp = (parts: readonly number[]) => parts.map((part) => String(part).padStart(2, "0")).join("");
  return `${stamp(day)}-${stamp(time)}-${Math.floor(random() * 0x1000000)
    .toString(16)
    .padStart(6, "0")}`;
}

/** Where a session's journal lies: grouped by month, so that no folder grows without end. */
export function sessionPath(stateDir: string, id: string): string {
  return join(stateDir, "sessions", id.slice(0, 6), `${id}.jsonl`);
}

/** The name of a tenant's folder. Never one that leads elsewhere: an empty name or one of dots would. */
export function tenantFolder(tenant: string): string {
  const name = encodeURIComponent(tenant);
  return /^\.{0,2}$/.test(name) ? `%${name.replaceAll(".", "2E%")}` : name;
}

/** Newest first. Reads only the beginning of each file. */
export function listSessions(stateDir: string): readonly SessionSummary[] {
  const root = join(stateDir, "sessions");
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .flatMap((month) => filesIn(join(root, month)))
    .flatMap((path) => {
      const summary = summarize(path);
      return summary ? [summary] : [];
    })
    .toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : a.id < b.id ? 1 : -1));
}

/** The one session whose id is, or begins with, `wanted`; `last` is the newest. */
export function findSession(stateDir: string, wanted: string): SessionSummary | readonly SessionSummary[] {
  const all = listSessions(stateDir);
  if (wanted === "last") return all[0] ?? [];
  const exact = all.find(({ id }) => id === wanted);
  const matches = all.filter(({ id }) => id.startsWith(wanted));
  return exact ?? (matches.length === 1 ? matches[0]! : matches);
}

function filesIn(folder: string): string[] {
  if (!statSync(folder).isDirectory()) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => join(folder, name));
}

const headBytes = 64 * 1024;

function summarize(path: string): SessionSummary | undefined {
  const records = readHead(path);
  const started = records.find((record) => record["type"] === "session.started");
  if (!started) return undefined;
  const turn = records.find((record) => record["type"] === "turn.started");
  return {
    id: String(started["session_id"]),
    cwd: String(started["cwd"]),
    startedAt: new Date(Number(started["at"])).toISOString(),
    updatedAt: statSync(path).mtime.toISOString(),
    title: titleOf(String(turn?.["prompt"] ?? firstWords(records))),
    path,
    ...(typeof started["client"] === "string" ? { client: started["client"] } : {}),
  };
}

function readHead(path: string): Record<string, unknown>[] {
  const fd = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(headBytes);
    const text = buffer.toString("utf8", 0, readSync(fd, buffer, 0, headBytes, 0));
    // The last piece may be cut in the middle. A line that does not parse is left out of the summary.
    return text.split("\n").flatMap((line) => {
      try {
        const value: unknown = JSON.parse(line);
        return isObject(value) ? [value] : [];
      } catch {
        return [];
      }
    });
  } finally {
    closeSync(fd);
  }
}

/** What the user of another agent said first, after notes that the agent itself put before it. */
function firstWords(records: readonly Record<string, unknown>[]): string {
  const end = records.findIndex((record) => record["type"] === "request.sent");
  const said = records.slice(0, end < 0 ? records.length : end).map((record) => record["item"]);
  const asked = said.findLast((item) => isObject(item) && item["type"] === "message" && item["role"] === "user");
  const content = isObject(asked) && Array.isArray(asked["content"]) ? asked["content"] : [];
  const text: unknown = content.findLast((part: unknown) => isObject(part) && part["type"] === "text");
  return isObject(text) ? String(text["text"]) : "";
}

/** The first line that is more than a tag: agents wrap what they send, `<session>` and the like. */
function titleOf(prompt: string): string {
  const lines = prompt.trim().split("\n");
  const line = (lines.find((one) => !/^\s*(?:<[^<>]*>\s*)*$/.test(one)) ?? lines[0] ?? "").trim();
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

/** A session that `exec`, `chat` or the gateway recorded in the same folder, for reading. */
export function findRecorded(folder: string, tenant: string | undefined, id: string): StoredSession | undefined {
  if (tenant === undefined || !/^[\w-]+$/.test(id)) return undefined;
  return listRecorded(folder, tenant, new Map()).find((session) => session.id === id);
}

/** All sessions except those that are being served. */
export function listRecorded(
  folder: string,
  tenant: string,
  served: ReadonlyMap<string, unknown>,
): readonly StoredSession[] {
  return listSessions(folder)
    .filter(({ id }) => !served.has(id))
    .map(({ id, title, cwd, startedAt, updatedAt, client }) => ({
      id,
      tenant,
      title,
      cwd,
      status: "ended",
      model: "",
      settings: { recorded: client === undefined ? "session" : "gateway" },
      startedAt: Date.parse(startedAt),
      updatedAt: Date.parse(updatedAt),
      questions: [],
      takings: 0,
    }));
}
