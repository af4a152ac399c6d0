/**
 * A session as a person reads it, made from the records of its journal and, while it runs, from live events. The same
 * code serves running sessions, recorded ones, gateway conversations and exported files.
 */
import type { SessionRecord } from "../src/client/index.ts";
import type { Item } from "../src/spec/model.ts";
import type { ApprovalRequest } from "../src/spec/stages.ts";

export interface Picture {
  readonly mediaType: string;
  readonly data: string;
}

export type Entry = MessageEntry | ThoughtEntry | CallEntry | NoteEntry | DiffEntry;

interface Common {
  readonly key: string;
  readonly at: number;
  /** Counts changes, so that a view knows when to draw again. */
  revision: number;
}

export interface MessageEntry extends Common {
  readonly kind: "message";
  readonly role: "user" | "assistant" | "system";
  text: string;
  readonly pictures: readonly Picture[];
  /** Still being said. */
  live: boolean;
}

export interface ThoughtEntry extends Common {
  readonly kind: "thought";
  text: string;
  live: boolean;
}

export interface CallEntry extends Common {
  readonly kind: "call";
  readonly id: string;
  tool: string;
  input: unknown;
  state: "asked" | "waiting" | "running" | "ok" | "failed";
  ruling?: {
    readonly decision: string;
    readonly by: string;
    readonly reason: string;
    readonly rule?: string;
    readonly ruleFile?: string;
  };
  denied?: { readonly reason: string; readonly inferred?: true };
  confined?: boolean;
  startedAt?: number;
  durationMs?: number;
  output: string;
  code?: string;
  exitCode?: number;
  pictures: readonly Picture[];
  approval?: ApprovalRequest;
  answer?: string;
  effects?: unknown;
}

export interface NoteEntry extends Common {
  readonly kind: "note";
  readonly level: "info" | "warning" | "error";
  readonly text: string;
}

export interface DiffEntry extends Common {
  readonly kind: "diff";
  readonly diff: string;
  readonly files: readonly { readonly path: string; readonly change?: string }[];
}

export interface Totals {
  input: number;
  output: number;
  costUsd?: number | undefined;
  contextTokens?: number | undefined;
  contextWindow?: number | undefined;
}

export interface Timeline {
  readonly entries: Entry[];
  readonly totals: Totals;
  plan: readonly { readonly step: string; readonly status: string }[];
  model: string;
  /** The number of the last record that was taken in. */
  last: number;
  running: boolean;
  add(record: SessionRecord): void;
  live(event: LiveEvent): void;
}

/** The events that have no record of their own while something is still going on. */
export interface LiveEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

const maxLiveOutput = 200_000;

/** A timeline while it is being written. */
interface Draft {
  readonly timeline: Timeline;
  readonly calls: Map<string, CallEntry>;
  /** What is being said right now, by the item it belongs to. */
  readonly growing: Map<string, MessageEntry | ThoughtEntry>;
  /** Calls as they were before the question whether to run them again, by their id. */
  readonly again: Map<string, CallEntry>;
  readonly onChange: (entry: Entry | undefined) => void;
}

export function createTimeline(onChange: (entry: Entry | undefined) => void = () => undefined): Timeline {
  const timeline: Timeline = {
    entries: [],
    totals: { input: 0, output: 0 },
    plan: [],
    model: "",
    last: -1,
    running: false,
    add(record) {
      if (record.n <= timeline.last) return;
      timeline.last = record.n;
      if (Object.hasOwn(readers, record.type)) readers[record.type]?.(draft, record);
    },
    live: (event) => readLive(draft, event),
  };
  const draft: Draft = { timeline, calls: new Map(), growing: new Map(), again: new Map(), onChange };
  return timeline;
}

function push<E extends Entry>({ timeline, onChange }: Draft, entry: E): E {
  timeline.entries.push(entry);
  onChange(undefined);
  return entry;
}

function touch({ onChange }: Draft, entry: Entry): void {
  entry.revision++;
  onChange(entry);
}

function note(draft: Draft, at: number, level: NoteEntry["level"], text: string): void {
  push(draft, { kind: "note", key: `note ${draft.timeline.entries.length}`, at, revision: 0, level, text });
}

/** The entry of a call, made when the call is first heard of. */
function callOf(draft: Draft, id: string, at: number, tool = "", input?: unknown): CallEntry {
  const known = draft.calls.get(id);
  if (known !== undefined) return known;
  const key = `call ${id} ${draft.timeline.entries.length}`;
  const entry: CallEntry = {
    kind: "call",
    key,
    at,
    revision: 0,
    id,
    tool,
    input,
    state: "asked",
    output: "",
    pictures: [],
  };
  draft.calls.set(id, entry);
  return push(draft, entry);
}

/** What was live is replaced by its record: the whole item. */
function settle({ timeline, growing, onChange }: Draft): void {
  if (growing.size === 0) return;
  for (const entry of growing.values()) {
    const index = timeline.entries.lastIndexOf(entry);
    if (index >= 0) timeline.entries.splice(index, 1);
  }
  growing.clear();
  onChange(undefined);
}

function readItem(draft: Draft, item: Item, at: number): void {
  const key = `item ${draft.timeline.last}`;
  if (item.type === "message") {
    const role = item.role === "developer" ? "system" : item.role;
    const text = item.refusal ?? item.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    push(draft, { kind: "message", key, at, revision: 0, role, text, pictures: picturesOf(item.content), live: false });
  } else if (item.type === "reasoning") {
    const text = item.text ?? item.summary?.join("\n\n") ?? "";
    if (text !== "") push(draft, { kind: "thought", key, at, revision: 0, text, live: false });
  } else if (item.type === "call") callOf(draft, item.id, at, item.name, parse(item.arguments));
  else if (item.type === "compaction") note(draft, at, "info", "The history was shortened here.");
}

const answers: Readonly<Record<string, string>> = {
  once: "yes, once",
  session: "yes, for this session",
  always: "yes, always",
  direct: "run it again directly",
  no: "no",
  stop: "no, and stop",
};

type Reader = (draft: Draft, record: SessionRecord) => void;

/** What each record says. Each line of a journal matched its checksum, so the fields have the shapes we wrote. */
const readers: Readonly<Record<string, Reader>> = {
  "session.started": ({ timeline }, record) => {
    timeline.model = String(record["model"]);
  },
  "turn.started": ({ timeline }) => {
    timeline.running = true;
  },
  "item.added": (draft, record) => {
    settle(draft);
    readItem(draft, record["item"] as Item, record.at);
  },
  "approval.asked": (draft, record) => {
    const request = record["request"] as ApprovalRequest;
    const entry = callOf(draft, String(record["id"]), record.at, request.call.tool, request.call.input);
    // Whether to run it again with more. Where nobody can be waited for, the question goes as it came.
    if (entry.state === "running" && request.effects === undefined) draft.again.set(entry.id, { ...entry });
    Object.assign(entry, { state: "waiting", approval: request });
    touch(draft, entry);
  },
  "approval.answered": (draft, record) => {
    const entry = callOf(draft, String(record["id"]), record.at);
    const answer = record["answer"] as { readonly answer?: string; readonly message?: string } | undefined;
    const before = draft.again.get(entry.id);
    draft.again.delete(entry.id);
    if (answer === undefined && before !== undefined) {
      const { state, approval, answer: first } = before;
      Object.assign(entry, { state, approval, answer: first });
      return touch(draft, entry);
    }
    entry.answer =
      answer === undefined
        ? "nobody could be asked"
        : [answers[answer.answer ?? ""] ?? answer.answer, answer.message].filter(Boolean).join(": ");
    if (entry.state === "waiting") entry.state = "asked";
    touch(draft, entry);
  },
  "call.started": (draft, record) => {
    const { tool, input, ruling, confined } = record;
    const entry = callOf(draft, String(record["id"]), record.at, String(tool), input);
    Object.assign(entry, { state: "running", tool, input, ruling, confined, startedAt: record.at });
    touch(draft, entry);
  },
  "call.ended": (draft, record) => readEnded(draft, record["call"] as Ended, record.at),
  "exec.output": (draft, record) => readLive(draft, record),
  "plan.updated": ({ timeline, onChange }, record) => {
    timeline.plan = stepsOf(record["plan"]);
    onChange(undefined);
  },
  "effects.undone": (draft, record) =>
    note(draft, record.at, "info", `Taken back: ${String(record["what"] ?? record["run"])}`),
  "effects.redone": (draft, record) =>
    note(draft, record.at, "info", `Done again: ${String(record["what"] ?? record["run"])}`),
  "diff.updated": (draft, record) => {
    const { diff, files, at, n } = record as unknown as {
      diff: string;
      files: DiffEntry["files"];
      at: number;
      n: number;
    };
    if (diff !== "") push(draft, { kind: "diff", key: `diff ${n}`, at, revision: 0, diff, files });
  },
  "usage.updated": ({ timeline, onChange }, record) => {
    const { total, contextTokens, contextWindow, costUsd } = record as unknown as Totals & { readonly total: Totals };
    const more = { contextTokens, contextWindow, costUsd };
    Object.assign(timeline.totals, { input: total.input, output: total.output, ...more });
    onChange(undefined);
  },
  "history.compacted": (draft, { at }) =>
    note(draft, at, "info", "The history was shortened here; what came before stays in the journal."),
  "undo.done": (draft, record) => {
    const conflicts = record["conflicts"] as readonly string[];
    if (conflicts.length > 0) note(draft, record.at, "warning", `Not taken back: ${conflicts.join("; ")}.`);
  },
  "mail.dropped": (draft, record) => note(draft, record.at, "warning", `Not taken: ${String(record["reason"])}`),
  "workspace.restored": (draft, { at }) =>
    note(draft, at, "info", "Another process went on here, with the files as the last call that ended had left them."),
  warning: (draft, record) => note(draft, record.at, "warning", String(record["message"])),
  error: (draft, record) => note(draft, record.at, "error", String(record["message"])),
  "turn.ended": (draft, record) => {
    draft.timeline.running = false;
    settle(draft);
    const { reason, detail, at } = record as unknown as { reason: string; detail?: string; at: number };
    const why = detail === undefined ? "" : ` (${detail})`;
    if (reason !== "done") note(draft, at, reason === "error" ? "error" : "info", `The turn ended: ${reason}${why}.`);
    draft.onChange(undefined);
  },
};

function readEnded(draft: Draft, ended: Ended, at: number): void {
  const { id, name, tool = name, ok, durationMs, content, code, exitCode, ruling, denied, effects, input } = ended;
  const entry = callOf(draft, id, at, tool, input);
  const output = content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("\n");
  Object.assign(entry, { state: ok ? "ok" : "failed", tool, durationMs, output, pictures: picturesOf(content) });
  if (code !== undefined) entry.code = code;
  if (typeof exitCode === "number") entry.exitCode = exitCode;
  if (ruling !== undefined) entry.ruling = ruling;
  if (denied !== undefined) entry.denied = denied;
  if (effects !== undefined) entry.effects = effects;
  touch(draft, entry);
}

function readLive(draft: Draft, event: LiveEvent): void {
  if (event.type === "item.delta" && event["field"] !== "arguments") return grow(draft, event);
  const entry = event.type === "exec.output" ? draft.calls.get(String(event["id"])) : undefined;
  if (entry === undefined || entry.state === "ok" || entry.state === "failed") return;
  entry.output = (entry.output + String(event["text"])).slice(-maxLiveOutput);
  touch(draft, entry);
}

function grow(draft: Draft, event: LiveEvent): void {
  const isThought = event["field"] === "reasoning" || event["field"] === "summary";
  const item = `live ${String(event["index"])} ${isThought}`;
  let entry = draft.growing.get(item);
  if (entry === undefined) {
    const common = {
      key: `${item} ${draft.timeline.entries.length}`,
      at: Date.now(),
      revision: 0,
      text: "",
      live: true,
    };
    entry = isThought
      ? { kind: "thought", ...common }
      : { kind: "message", role: "assistant", pictures: [], ...common };
    draft.growing.set(item, entry);
    push(draft, entry);
  }
  entry.text += String(event["delta"]);
  touch(draft, entry);
}

interface Ended {
  readonly id: string;
  readonly name: string;
  readonly tool?: string;
  readonly input?: unknown;
  readonly ok: boolean;
  readonly code?: string;
  readonly exitCode?: number | null;
  readonly content: readonly {
    readonly type: string;
    readonly text?: string;
    readonly data?: string;
    readonly mediaType?: string;
    readonly mimeType?: string;
  }[];
  readonly durationMs: number;
  readonly ruling?: NonNullable<CallEntry["ruling"]>;
  readonly denied?: NonNullable<CallEntry["denied"]>;
  readonly effects?: unknown;
}

/** Only pictures that a browser shows without running anything. */
function picturesOf(parts: readonly { readonly type: string }[]): readonly Picture[] {
  return parts.flatMap((part) => {
    const { data, mediaType, mimeType } = part as { data?: unknown; mediaType?: unknown; mimeType?: unknown };
    const type = mediaType ?? mimeType;
    const isShown =
      part.type === "image" &&
      typeof data === "string" &&
      typeof type === "string" &&
      /^image\/(?:png|jpeg|gif|webp)$/.test(type);
    return isShown ? [{ mediaType: type, data }] : [];
  });
}

function stepsOf(plan: unknown): Timeline["plan"] {
  const list = Array.isArray(plan)
    ? plan
    : typeof plan === "object" && plan !== null && "plan" in plan && Array.isArray(plan.plan)
      ? plan.plan
      : [];
  return list.flatMap((entry: unknown) => {
    if (typeof entry !== "object" || entry === null) return [];
    const { step, status } = entry as { step?: unknown; status?: unknown };
    return typeof step === "string" ? [{ step, status: String(status ?? "pending") }] : [];
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
