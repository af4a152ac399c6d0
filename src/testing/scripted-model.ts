/** A model that gives the answers it was handed, one after another. */
import { text } from "../base/content.ts";
import type { Json } from "../base/json.ts";
import type { Answer, Item, Model, ModelRequest } from "../spec/model.ts";
import { answerToEvents } from "../wire/answer.ts";

/** What a scripted model says in one answer. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly ScriptedCall[];
  readonly end?: Partial<Pick<Answer, "outcome" | "finish" | "usage" | "error">>;
}

/** A call that the scripted model makes. */
export interface ScriptedCall {
  readonly name: string;
  readonly input?: Json;
  /** Raw text instead of `input`: a custom tool's input, or arguments that are broken on purpose. */
  readonly arguments?: string;
  readonly kind?: "function" | "custom" | "tool_search";
  readonly id?: string;
  readonly complete?: boolean;
}

/** One answer of the script, or a function that makes it from the request. */
export type ScriptedStep = ScriptedAnswer | ((request: ModelRequest) => ScriptedAnswer);

/** A model that says what the test tells it, one step per request. It keeps what it was asked. */
export interface ScriptedModel extends Model {
  readonly requests: readonly ModelRequest[];
}

/** A model that gives these answers, one after another. */
export function createScriptedModel(steps: readonly ScriptedStep[], name = "scripted"): ScriptedModel {
  for (const step of steps) if (typeof step !== "function") toAnswer(step, 0); // a mistake in the script is told at once
  const requests: ModelRequest[] = [];
  return {
    name,
    requests,
    async *ask(request, signal) {
      signal.throwIfAborted();
      const step = steps[requests.length];
      // A copy, because the session keeps adding to the history it passed.
      requests.push({ ...request, input: [...request.input] });
      if (step === undefined) throw new Error(`The script has ${steps.length} answers and was asked for one more.`);
      yield* answerToEvents(toAnswer(typeof step === "function" ? step(request) : step, requests.length));
    },
  };
}

/** A scripted answer as a model would have given it. */
export function toAnswer(step: ScriptedAnswer, number: number): Answer {
  const items: Item[] = [];
  if (step.reasoning !== undefined) items.push({ type: "reasoning", text: step.reasoning });
  if (step.text !== undefined) items.push({ type: "message", role: "assistant", content: [text(step.text)] });
  for (const [index, call] of (step.calls ?? []).entries()) {
    if (call.arguments !== undefined && typeof call.arguments !== "string")
      throw new TypeError(`The script's call of '${call.name}': 'arguments' is text; give a value as 'input'.`);
    items.push({
      type: "call",
      kind: call.kind ?? "function",
      id: call.id ?? `call_${number}_${index}`,
      name: call.name,
      arguments: call.arguments ?? JSON.stringify(call.input ?? {}),
      complete: call.complete ?? true,
    });
  }
  const finish = (step.calls ?? []).length > 0 ? "tool_calls" : "stop";
  return { items, outcome: "ok", finish, ...step.end };
}
