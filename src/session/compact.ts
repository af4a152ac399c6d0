import { partsToText, text } from "../base/content.ts";
import type { Item, MessageItem, Model, ModelRequest } from "../spec/model.ts";
import { collectAsync } from "../wire/answer.ts";
import { estimateItem } from "./tokens.ts";

/** What the next model needs to know beyond the words: kept through every compaction. */
export interface Kept {
  readonly plan?: string;
  readonly openSessions?: readonly string[];
}

/** User messages carried over whole, newest first, up to this many tokens. */
const keptMessageTokens = 20_000;

const summaryPrompt = `Write a hand-over for whoever continues this work and sees nothing of the conversation above. Say, briefly and concretely:
- what the user asked for, with every constraint they named;
- what has been done and decided, with file names, commands and their results;
- what is left to do next, in order;
- anything that failed and why.
Write only the hand-over.`;

const leadIn = "The conversation before this point was summarised. Hand-over from your earlier self:";

/** Shortens a history: the user's own messages, then a summary written by the model itself. */
export async function compactHistory(
  model: Model,
  request: ModelRequest,
  kept: Kept,
  signal: AbortSignal,
): Promise<readonly Item[]> {
  const summary = await summarize(model, request, signal);
  const words = [leadIn, summary];
  if (kept.plan !== undefined) words.push(`The plan as it stands:\n${kept.plan}`);
  if (kept.openSessions?.length) words.push(`Commands still running: ${kept.openSessions.join("; ")}`);
  return [...lastUserMessages(request.input), { type: "compaction", text: words.join("\n\n") }];
}

/** If the history itself is too long to be summarised, its oldest part is left out and it is tried again. */
async function summarize(model: Model, request: ModelRequest, signal: AbortSignal): Promise<string> {
  const question: MessageItem = { type: "message", role: "user", content: [text(summaryPrompt)] };
  for (let from = 0; ; from = from + Math.max(1, Math.ceil((request.input.length - from) / 3))) {
    const { toolChoice: _choice, parallel: _parallel, ...rest } = request;
    const answer = await collectAsync(
      model.ask({ ...rest, input: [...request.input.slice(from), question], tools: [] }, signal),
    );
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

function lastUserMessages(items: readonly Item[]): Item[] {
  const messages: Item[] = [];
  let tokens = 0;
  for (const item of items.toReversed()) {
    if (item.type !== "message" || item.role !== "user") continue;
    tokens += estimateItem(item);
    if (tokens > keptMessageTokens) break;
    messages.unshift(item);
  }
  return messages;
}
