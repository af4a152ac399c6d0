/** How a Gemini answer ended: finish reason, usage, blocked prompts and errors. */
import { defined } from "../../base/json.ts";
import type { AnswerEnd, Extra, Finish, ModelError, Outcome, Usage } from "../../spec/model.ts";
import { count, json, object, word, type Raw } from "../raw.ts";
import { wire } from "./parts.ts";

/** What a stream has said about its end so far. */
export interface Ending {
  finish?: Finish;
  usage?: Usage;
  error?: ModelError;
  extra?: Extra;
}

const filtered = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "LANGUAGE",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

/** Takes finish, usage and errors from a chunk; says whether there was anything of the kind. */
export function readEnding(chunk: Raw, candidate: Raw | undefined, ending: Ending): boolean {
  const usage = readUsage(object(chunk["usageMetadata"]));
  if (usage !== undefined) ending.usage = usage;
  const reason = word(candidate?.["finishReason"]);
  // A blocked prompt or a failure stays what it is, whatever follows.
  if (reason !== undefined && reason !== "FINISH_REASON_UNSPECIFIED" && ending.error === undefined)
    Object.assign(ending, readFinish(reason, candidate));
  const blocked = word(object(chunk["promptFeedback"])["blockReason"]);
  if (blocked !== undefined && !blocked.endsWith("_UNSPECIFIED")) {
    ending.finish = "content_filter";
    ending.error = {
      code: blocked,
      message: word(object(chunk["promptFeedback"])["blockReasonMessage"]) ?? `the prompt was blocked: ${blocked}`,
    };
  }
  const failure = object(chunk["error"]);
  if (Object.keys(failure).length > 0) ending.error = readError(failure);
  const grounding = candidate?.["groundingMetadata"];
  if (grounding !== undefined) ending.extra = { wire, fields: { groundingMetadata: json(grounding) } };
  return usage !== undefined || reason !== undefined || ending.error !== undefined;
}

function readFinish(reason: string, candidate: Raw | undefined): Ending {
  if (reason === "STOP") return { finish: "stop" };
  if (reason === "MAX_TOKENS") return { finish: "length" };
  if (filtered.has(reason)) return { finish: "content_filter" };
  return {
    finish: "error",
    error: { code: reason, message: word(candidate?.["finishMessage"]) ?? `the model's turn ended with ${reason}` },
  };
}

function readError(failure: Raw): ModelError {
  const status = count(failure["code"]);
  return {
    message: word(failure["message"]) ?? "the provider reported an error",
    ...defined({ code: word(failure["status"]), status }),
  };
}

function readUsage(usage: Raw): Usage | undefined {
  const input = count(usage["promptTokenCount"]);
  const candidates = count(usage["candidatesTokenCount"]);
  const reasoning = count(usage["thoughtsTokenCount"]);
  if (input === undefined && candidates === undefined) return undefined;
  const tools = count(usage["toolUsePromptTokenCount"]) ?? 0;
  return {
    input: (input ?? 0) + tools,
    output: (candidates ?? 0) + (reasoning ?? 0),
    ...defined({ cached: count(usage["cachedContentTokenCount"]), reasoning }),
  };
}

export function outcomeOf({ finish, error }: Ending): Outcome {
  if (error !== undefined) return "error";
  if (finish === "length" || finish === "content_filter") return "incomplete";
  return finish === undefined ? "truncated" : "ok";
}

export function toEnd(ending: Ending, outcome: Outcome, calls: number): AnswerEnd {
  const finish = outcome === "ok" ? (calls > 0 ? "tool_calls" : "stop") : ending.finish;
  return { outcome, ...defined({ finish, usage: ending.usage, error: ending.error, extra: ending.extra }) };
}
