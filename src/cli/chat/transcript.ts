/** Writes a journal as a Markdown document. */
import type { ApprovalAnswer } from "../../spec/stages.ts";
import { describeAnswer, describeDenied } from "./answer-words.ts";
import { basename } from "node:path";
import { partsToText } from "../../base/content.ts";
import type { Ended, Ruling } from "../../spec/call.ts";
import type { StartedPrograms } from "../../spec/capability.ts";
import type { CallItem, Item } from "../../spec/model.ts";
import type { CommandLookedAt, TakenBack } from "../../session/index.ts";
import type { SessionSummary, StoredRecord } from "../../store/index.ts";
import { describePlan, describeUndo } from "./timeline.ts";
import { visible } from "./visible.ts";

export interface Entry {
  readonly kind: "user" | "assistant" | "reasoning" | "call" | "result" | "note";
  readonly title: string;
  readonly body: string;
  readonly at: number;
  readonly ok?: boolean;
}

/** The records that a reader wants to see, in order. */
export function toEntries(records: readonly StoredRecord[]): readonly Entry[] {
  return records.flatMap((record): Entry[] => {
    const { at, type } = record;
    // Trusted: each line matched its checksum, so these are the shapes we wrote.
    if (type === "item.added") return itemEntry(record["item"] as Item, at);
    if (type === "call.ended") return [endedEntry(record["call"] as Ended, at)];
    if (type === "plan.updated") return [note(at, describePlan(record["plan"]).trim())];
    if (type === "approval.answered") return [note(at, answerLine(record["answer"] as ApprovalAnswer | undefined))];
    if (type === "exec.request") return [note(at, requestLine(record))];
    if (type === "exec.programs") return [note(at, programsLine(record))];
    if (type === "history.compacted") return [compactedEntry(record, at)];
    if (type === "effects.snapshot" || type === "effects.undone" || type === "effects.redone")
      return [note(at, describeUndo(record as unknown as CommandLookedAt | TakenBack))];
    if (type === "warning" || type === "error") return [note(at, `${type}: ${String(record["message"])}`)];
    if (type === "turn.ended" && record["reason"] !== "done")
      return [note(at, `the turn ended: ${String(record["reason"])}`)];
    return [];
  });
}

function answerLine(answer: ApprovalAnswer | undefined): string {
  const message = answer !== undefined && "message" in answer ? answer.message : undefined;
  return `asked: ${describeAnswer(answer)}${message === undefined ? "" : `: ${message}`}`;
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
  const ruled = call.ruling === undefined ? "" : ` — ${rulingWords(call.ruling)}`;
  const why = call.denied === undefined ? ruled : `${ruled}; ${describeDenied(call.denied)}`;
  const title = `${call.tool ?? call.name} ${call.ok ? "ok" : (call.code ?? "failed")} in ${call.durationMs} ms${why}`;
  return { kind: "result", title, body: partsToText(call.content), at, ok: call.ok };
}

/** The rule is named, with its file: whoever wants another decision changes it there. */
function rulingWords({ decision, by, reason, rule, ruleFile }: Ruling): string {
  const named = rule === undefined ? "" : ` (${rule}${ruleFile === undefined ? "" : `, in ${ruleFile}`})`;
  return `${decision} by ${by}: ${reason}${named}`;
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

/** One line, however many there were: each program once, in the order of its first start. */
function programsLine(record: StoredRecord): string {
  const { list, unlisted } = record as unknown as StartedPrograms; // trusted: the shape we wrote
  const names = (refused: boolean) =>
    new Set(
      list
        .filter(({ refusedBy }) => (refusedBy !== undefined) === refused)
        .map(({ argv, refusedBy }) =>
          refusedBy === undefined ? basename(argv[0] ?? "") : `${argv.join(" ").slice(0, 80)} (rule '${refusedBy}')`,
        ),
    );
  const [started, refused] = [[...names(false)], [...names(true)]];
  const more = unlisted > 0 ? ` and ${unlisted} more` : "";
  return [
    ...(started.length > 0 || unlisted > 0 ? [`started: ${started.slice(0, 20).join(", ")}${more}`] : []),
    ...(refused.length > 0 ? [`not started: ${refused.slice(0, 5).join(", ")}`] : []),
  ].join("; ");
}

function note(at: number, body: string): Entry {
  return { kind: "note", title: "", body, at };
}

export function toMarkdown(summary: SessionSummary, records: readonly StoredRecord[]): string {
  const head = [
    `# ${summary.title || summary.id}`,
    "",
    `Session ${summary.id}, ${summary.startedAt}, ${summary.client === undefined ? `in ${summary.cwd}` : `of ${summary.client} through the gateway`}`,
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
