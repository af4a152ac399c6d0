/** Shortens a history that has become too long for the model: by the model, as text, or by the provider, sealed. */
import { partsToText, text } from "../base/content.ts";
import { fittingStart } from "../base/tokens.ts";
import type { Answer, CompactionItem, Item, MessageItem, Model, ModelRequest, Usage } from "../spec/model.ts";
import { collect } from "../wire/answer.ts";
import { addUsage, noUsage } from "./limits.ts";
import { estimateItem } from "./tokens.ts";

/** What the next model needs to know besides the text. It survives every compaction. */
export interface Kept {
  /** The model's window. What is carried over stays well below it. */
  readonly window?: number;
  readonly plan?: string;
  readonly openSessions?: readonly string[];
}

/**
 * Who writes the short form: the model, as text that anyone can read, or the provider, sealed and for
 * its own wire only.
 */
export type CompactionBy = "model" | "provider";

export interface Compacted {
  readonly items: readonly Item[];
  readonly by: CompactionBy;
  /** What all requests used, including failed attempts. */
  readonly usage: Usage;
}

type Ask = (request: ModelRequest) => Promise<Answer>;

/** The newest user messages are carried over unchanged, up to this many tokens. */
const keptMessageTokens = { model: 20_000, provider: 64_000 } as const;
/** How often a provider is asked before the model does it instead. */
const providerAttempts = 2;

const summaryPrompt = `Write a hand-over for whoever continues this work and sees nothing of the conversation above. Say, briefly and concretely:
- what the user asked for, with every constraint they named;
- what has been done and decided, with file names, commands and their results;
- what is left to do next, in order;
- anything that failed and why.
Write only the hand-over.`;

const leadIn = "The conversation before this point was summarised. Hand-over from your earlier self:";

/** Shortens a history: first the user's own messages, then the short form of everything else. */
export async function compactHistory(
  model: Model,
  request: ModelRequest,
  kept: Kept,
  wanted: CompactionBy,
  signal: AbortSignal,
): Promise<Compacted> {
  const notes = describeKept(kept);
  let usage = noUsage;
  const ask: Ask = async (asked) => {
    const answer = await collect(model.ask(asked, signal));
    if (answer.usage !== undefined) usage = addUsage(usage, answer.usage);
    return answer;
  };
  const limitOf = (by: CompactionBy) => Math.min(keptMessageTokens[by], (kept.window ?? Infinity) / 4);
  if (wanted === "provider") {
    const sealed = await askProvider(ask, request, signal);
    if (sealed) {
      const rest: Item[] = notes.length === 0 ? [] : [note(notes.join("\n\n"))];
      const items = [...lastUserMessages(request.input, limitOf("provider")), sealed, ...rest];
      return { by: "provider", items, usage };
    }
    const whole = await model.compact?.(request, signal);
    signal.throwIfAborted();
    if (whole !== undefined && whole.length > 0)
      return { by: "provider", items: [...whole, ...(notes.length === 0 ? [] : [note(notes.join("\n\n"))])], usage };
  }
  const words = [leadIn, await summarize(ask, request), ...notes];
  const short: CompactionItem = { type: "compaction", text: words.join("\n\n") };
  return { by: "model", items: [...lastUserMessages(request.input, limitOf("model")), short], usage };
}

function describeKept({ plan, openSessions }: Kept): readonly string[] {
  return [
    ...(plan === undefined ? [] : [`The plan as it stands:\n${plan}`]),
    ...(openSessions?.length ? [`Commands still running: ${openSessions.join("; ")}`] : []),
  ];
}

function note(words: string): MessageItem {
  return { type: "message", role: "developer", content: [text(words)] };
}

/**
 * The compaction of Responses: a trigger as the last item, and exactly one sealed item in return.
 * Undefined if the provider does not know it.
 */
async function askProvider(ask: Ask, request: ModelRequest, signal: AbortSignal): Promise<CompactionItem | undefined> {
  const trigger: Item = { type: "other", wire: "responses", raw: { type: "compaction_trigger" } };
  for (let attempt = 0; attempt < providerAttempts; attempt++) {
    const answer = await ask({ ...request, input: [...request.input, trigger] });
    signal.throwIfAborted();
    const sealed = answer.items.filter((item) => item.type === "compaction");
    if (answer.outcome === "ok" && sealed.length === 1) return sealed[0];
  }
  return undefined;
}

/** If the history is too long even to be summarised, its oldest part is left out and it is tried again. */
async function summarize(ask: Ask, request: ModelRequest): Promise<string> {
  const question: MessageItem = { type: "message", role: "user", content: [text(summaryPrompt)] };
  for (let from = 0; ; from = from + Math.max(1, Math.ceil((request.input.length - from) / 3))) {
    const { toolChoice: _choice, parallel: _parallel, outputSchema: _schema, ...rest } = request;
    const answer = await ask({ ...rest, input: [...request.input.slice(from), question], tools: [] });
    const said = answer.items
      .flatMap((item) => (item.type === "message" ? [partsToText(item.content)] : []))
      .join("\n")
      .trim();
    if (answer.outcome === "ok" && said !== "") return said;
    if (answer.error?.type !== "context_overflow" || from >= request.input.length - 1) {
      throw new Error(`The history could not be summarised: ${answer.error?.message ?? "the model said nothing"}`);
    }
  }
}

/**
 * The newest messages that fit, in their order. The one that crosses the limit is cut, so that the
 * last request is never lost.
 */
function lastUserMessages(items: readonly Item[], limit: number): Item[] {
  const messages: Item[] = [];
  let left = limit;
  for (const item of items.toReversed()) {
    if (item.type !== "message" || item.role !== "user") continue;
    const tokens = estimateItem(item);
    if (tokens > left) {
      const words = partsToText(item.content);
      const beginning = words.slice(0, fittingStart(words, left));
      if (messages.length === 0) messages.unshift({ ...item, content: [text(`${beginning}\n[… cut]`)] });
      break;
    }
    left -= tokens;
    messages.unshift(item);
  }
  return messages;
}
