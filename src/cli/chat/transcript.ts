/** A journal as a document: Markdown for reading, HTML that stands alone for keeping. */
import { partsToText } from "../../base/content.ts";
import type { Ended } from "../../spec/call.ts";
import type { CallItem, Item } from "../../spec/model.ts";
import type { SessionSummary, StoredRecord } from "../../store/index.ts";
import { describePlan } from "./timeline.ts";
import { visible } from "./visible.ts";

export interface Entry {
  readonly kind: "user" | "assistant" | "reasoning" | "call" | "result" | "note";
  readonly title: string;
  readonly body: string;
  readonly at: number;
  readonly ok?: boolean;
}

/** What a reader wants of the records, in order. */
export function toEntries(records: readonly StoredRecord[]): readonly Entry[] {
  return records.flatMap((record): Entry[] => {
    const { at, type } = record;
    // Trusted: each line matched its checksum, so these are the shapes we wrote.
    if (type === "item.added") return itemEntry(record["item"] as Item, at);
    if (type === "call.ended") return [endedEntry(record["call"] as Ended, at)];
    if (type === "plan.updated") return [note(at, describePlan(record["plan"]).trim())];
    if (type === "approval.answered")
      return [note(at, `approval: ${JSON.stringify(record["answer"] ?? "nobody to ask")}`)];
    if (type === "exec.request") return [note(at, requestLine(record))];
    if (type === "history.compacted") return [compactedEntry(record, at)];
    if (type === "warning" || type === "error") return [note(at, `${type}: ${String(record["message"])}`)];
    if (type === "turn.ended" && record["reason"] !== "done")
      return [note(at, `the turn ended: ${String(record["reason"])}`)];
    return [];
  });
}

function itemEntry(item: Item, at: number): Entry[] {
  if (item.type === "message")
    return [
      { kind: item.role === "user" ? "user" : "assistant", title: item.role, body: partsToText(item.content), at },
    ];
  if (item.type === "reasoning")
    return [{ kind: "reasoning", title: "reasoning", body: item.text ?? item.summary?.join("\n") ?? "", at }];
  if (item.type === "call") return [callEntry(item, at)];
  return [];
}

function callEntry(call: CallItem, at: number): Entry {
  return { kind: "call", title: call.name, body: call.arguments, at };
}

function endedEntry(call: Ended, at: number): Entry {
  const why = call.ruling ? ` — ${call.ruling.decision} by ${call.ruling.by}: ${call.ruling.reason}` : "";
  const title = `${call.tool ?? call.name} ${call.ok ? "ok" : (call.code ?? "failed")} in ${call.durationMs} ms${why}`;
  return { kind: "result", title, body: partsToText(call.content), at, ok: call.ok };
}

/** Where the history was shortened, and what the model has seen of the part above since then. */
function compactedEntry(record: StoredRecord, at: number): Entry {
  const items = record["items"] as readonly Item[];
  const short = items.find((item) => item.type === "compaction");
  const from = `the history was shortened here: ${Number(record["tokensBefore"])} → ${Number(record["tokensAfter"])} tokens (${String(record["reason"])})`;
  const words = short?.text ?? "(sealed by the provider)";
  return note(at, `${from}\nWhat stands above is no longer sent; in its place the model is told:\n\n${words}`);
}

function requestLine(record: StoredRecord): string {
  const end = record["allowed"] === true ? "allowed" : `refused: ${String(record["reason"])}`;
  return `network: ${String(record["method"])} ${String(record["host"])}:${String(record["port"])} ${end}`;
}

function note(at: number, body: string): Entry {
  return { kind: "note", title: "", body, at };
}

export function toMarkdown(summary: SessionSummary, records: readonly StoredRecord[]): string {
  const head = [
    `# ${summary.title || summary.id}`,
    "",
    `Session ${summary.id}, ${summary.startedAt}, in ${summary.cwd}`,
    "",
  ];
  const parts = toEntries(records).map((entry) => {
    const body = visible(entry.body);
    if (entry.kind === "note") return `> ${body.replaceAll("\n", "\n> ")}`;
    if (entry.kind === "user" || entry.kind === "assistant") return `## ${entry.title}\n\n${body}`;
    if (entry.kind === "reasoning") return `*${body.replaceAll("\n", " ")}*`;
    return `**${entry.kind === "call" ? "call " : ""}${visible(entry.title)}**\n\n${fence(body)}`;
  });
  return `${[...head, parts.join("\n\n")].join("\n")}\n`;
}

/** A fence longer than any run of backquotes inside. */
function fence(body: string): string {
  const longest = Math.max(2, ...[...body.matchAll(/`+/g)].map(([run]) => run.length));
  const mark = "`".repeat(longest + 1);
  return `${mark}\n${body}\n${mark}`;
}

const page = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}article{margin:1rem 0;padding:.6rem .9rem;border-left:3px solid #d0d7de}
.user{border-color:#0969da;background:#f0f6ff}.assistant{border-color:#1a7f37}.reasoning{color:#57606a;font-style:italic}
.call,.result{background:#f6f8fa;font-size:.9em}.failed{border-color:#cf222e}.note{color:#57606a;border:none}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;max-height:30rem;overflow:auto}small{color:#57606a}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}.user{background:#0b1d33}.call,.result{background:#161b22}}`;

/** One file, nothing fetched, no script. */
export function toHtml(summary: SessionSummary, records: readonly StoredRecord[]): string {
  const articles = toEntries(records).map(({ kind, title, body, at, ok }) => {
    const time = new Date(at).toISOString().slice(11, 19);
    return `<article class="${kind}${ok === false ? " failed" : ""}"><small>${time} ${escape(visible(title))}</small><pre>${escape(visible(body))}</pre></article>`;
  });
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(summary.title || summary.id)}</title><style>${page}</style>
<h1>${escape(summary.title || summary.id)}</h1><p><small>Session ${escape(summary.id)}, ${escape(summary.startedAt)}, in ${escape(summary.cwd)}</small></p>
${articles.join("\n")}
</html>
`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
