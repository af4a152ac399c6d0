/**
 * One call for what otherwise takes an engine, a session, a loop over events and their closing: a prompt in, text or a
 * checked value out. What is made for it is closed with it.
 */
import { defined } from "../base/json.ts";
import { checkOptions, optionsShape } from "../base/shape.ts";
import { createQueue } from "../base/queue.ts";
import { toToolSpecs } from "../registry/tool-spec.ts";
import { createEngine, type Engine, type EngineOptions } from "../router/engine.ts";
import type { Infer, InputSchema } from "../spec/infer.ts";
import type { Item, MessageItem, Model, ToolSpec, Usage } from "../spec/model.ts";
import type { AnyTool } from "../spec/tool.ts";
import type { SessionEvent, TurnEnded, TurnEndReason } from "./events.ts";
import { createSession } from "./session.ts";
import type { SessionOptions } from "./session-options.ts";

/** Options of `generate` and `stream`. */
export interface GenerateOptions<S extends InputSchema = InputSchema>
  extends
    Pick<SessionOptions, "instructions" | "limits" | "price" | "contextWindow" | "request" | "isRetryable" | "journal">,
    Partial<Pick<EngineOptions, "workspace" | "approval" | "sandbox" | "approver">> {
  readonly model: Model;
  readonly prompt: string | MessageItem["content"];
  /** What the model may call. */
  readonly tools?: readonly AnyTool[];
  /** An engine that is there already, instead of `tools` and of settings for a new one. It stays open. */
  readonly engine?: Engine;
  /** The result has to fit this schema: it is checked, and asked for again where it does not. */
  readonly output?: S;
  readonly signal?: AbortSignal;
}

/** What came of it: the text, the typed output, what it cost. */
export interface Generated<Output> {
  /** The last thing the model said. */
  readonly text: string;
  /** The same as a value of the schema; undefined where none was given. */
  readonly output: Output;
  readonly usage: Usage;
  readonly costUsd: number;
  readonly requests: number;
  readonly calls: number;
  readonly history: readonly Item[];
}

/** Everything that happens, as it happens. Leaving a loop over it early interrupts the model and its calls. */
export interface GenerateStream<Output> extends AsyncIterable<SessionEvent> {
  /** The model's words alone. */
  readonly text: AsyncIterable<string>;
  /** Rejects with a GenerateError where there is no result. */
  readonly result: Promise<Generated<Output>>;
}

/** There is no result: the model failed, a limit was reached, the answer did not fit, or somebody stopped it. */
export class GenerateError extends Error {
  override readonly name = "GenerateError";
  readonly reason: TurnEndReason | "waiting";
  /** What the model had said. */
  readonly text: string;
  readonly usage: Usage | undefined;

  constructor(reason: GenerateError["reason"], message: string, ended?: TurnEnded) {
    super(message);
    this.reason = reason;
    this.text = ended?.text ?? "";
    this.usage = ended?.usage;
  }
}

/** What a schema's value is; nothing where there is no schema. */
export type OutputOf<S> = InputSchema extends S ? undefined : Infer<S>;

/** A model that goes on for ever is stopped, unless `limits` says otherwise. */
export const defaultLimits = { maxRequests: 50 };

/** What is handed on to the session and its engine, which check it themselves. */
export const sessionFields = {
  instructions: "any",
  limits: "any",
  price: "any",
  contextWindow: "any",
  request: "any",
  isRetryable: "any",
  journal: "any",
  workspace: "any",
  approval: "any",
  sandbox: "any",
  approver: "any",
} as const;

const generateShape = optionsShape<GenerateOptions>(
  {
    model: { methods: ["ask"], words: "a model: an object with a name and a function 'ask'" },
    prompt: "any",
    tools: { list: "any" },
    engine: { methods: ["run", "lanes", "on"], words: "an engine, as createEngine makes it" },
    output: "any",
    signal: "any",
    ...sessionFields,
  },
  "model",
  "prompt",
);

/** Asks a model once, with tools if you like, and gives back its text or a value of your schema. */
export async function generate<const S extends InputSchema = InputSchema>(
  options: GenerateOptions<S>,
): Promise<Generated<OutputOf<S>>> {
  return stream(options).result;
}

/** The same as `generate`, while it is written. */
export function stream<const S extends InputSchema = InputSchema>(
  options: GenerateOptions<S>,
): GenerateStream<OutputOf<S>> {
  checkOptions("generate", options, generateShape);
  return play(options, (engine) => {
    const names = options.tools?.map(({ name }) => name);
    const tools = names === undefined ? undefined : toToolSpecs(engine, { only: names });
    return { model: options.model, ...(tools === undefined ? {} : { tools: () => tools }) };
  });
}

/** What the model is, and what it is offered, from one request to the next. */
export interface Cast {
  readonly model: Model;
  readonly tools?: () => readonly ToolSpec[];
}

/** `hidden` are further tools of the engine: what is offered, `cast` says. */
export function play<S extends InputSchema>(
  options: GenerateOptions<S>,
  cast: (engine: Engine) => Cast,
  hidden: readonly AnyTool[] = [],
): GenerateStream<OutputOf<S>> {
  const { engine: given, tools = [], signal } = options;
  if (given !== undefined && options.tools !== undefined)
    throw new TypeError("generate: give 'engine' or 'tools', not both: an engine has its tools");
  const engine =
    given ?? createEngine({ workspace: ".", ...engineOptions(options), tools: [...new Set([...tools, ...hidden])] });
  const { instructions, limits, price, contextWindow, request, isRetryable, journal, output } = options;
  const session = createSession({
    id: `generate-${crypto.randomUUID()}`,
    engine,
    ...cast(engine),
    limits: { ...defaultLimits, ...limits },
    ...defined({ instructions, price, contextWindow, request, isRetryable, journal, output }),
  });
  const events = createQueue<SessionEvent>();
  const words = createQueue<string>();
  const stop = () => session.interrupt();

  const run = async (): Promise<Generated<OutputOf<S>>> => {
    let ended: TurnEnded | undefined;
    let isWaiting = false;
    try {
      signal?.addEventListener("abort", stop, { once: true });
      for await (const event of session.send(options.prompt)) {
        events.push(event);
        if (event.type === "item.delta" && event.field === "text") words.push(event.delta);
        if (event.type === "turn.ended") ended = event;
        if (event.type === "turn.waiting") isWaiting = true;
        if (signal?.aborted) stop();
      }
    } finally {
      signal?.removeEventListener("abort", stop);
      await session.close();
      if (given === undefined) await engine.close();
    }
    if (isWaiting || ended === undefined)
      throw new GenerateError("waiting", "A call waits for an answer that comes later; use a session for that.");
    if (ended.reason !== "done")
      throw new GenerateError(ended.reason, ended.detail ?? `The turn ended as ${ended.reason}.`, ended);
    const { text, usage, requests, calls } = ended;
    // Checked against the schema before the turn was done; without one it is undefined, as the type says.
    const value = ended.output as OutputOf<S>;
    return { text, output: value, usage, costUsd: session.costUsd, requests, calls, history: session.history };
  };
  const result = run();
  result.then(
    () => [events.end(), words.end()],
    (error: unknown) => [events.fail(error), words.fail(error)], // told there too; whoever only reads a stream hears of it
  );
  return {
    [Symbol.asyncIterator]: () => untilLeft(events, stop),
    text: { [Symbol.asyncIterator]: () => untilLeft(words, stop) },
    result,
  };
}

function engineOptions({ workspace, approval, sandbox, approver }: GenerateOptions): Partial<EngineOptions> {
  return defined({ workspace, approval, sandbox, approver });
}

async function* untilLeft<Value>(values: AsyncIterable<Value>, stop: () => void): AsyncGenerator<Value> {
  try {
    yield* values;
  } finally {
    stop();
  }
}
