/**
 * A prompt goes in, and text or a checked value comes out. Otherwise that would take an engine, a session, a loop
 * over its events, and closing all of them. Whatever is created here is closed at the end.
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
  /** The model that is asked. */
  readonly model: Model;
  /** What it is asked. */
  readonly prompt: string | MessageItem["content"];
  /** What the model may call. */
  readonly tools?: readonly AnyTool[];
  /** An existing engine, instead of `tools` and settings for a new one. It stays open. */
  readonly engine?: Engine;
  /** The schema that the result has to fit. The result is checked, and asked for again if it does not fit. */
  readonly output?: S;
  /** Ends everything, including calls that are running. */
  readonly signal?: AbortSignal;
}

/** The result: the text, the typed output, and what it cost. */
export interface Generated<Output> {
  /** The last text of the model. */
  readonly text: string;
  /** The text as a value of the schema. Undefined if no schema was given. */
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
  /** Rejects with a GenerateError if there is no result. */
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

/** The type of a schema's value; undefined without a schema. */
export type OutputOf<S> = InputSchema extends S ? undefined : Infer<S>;

/** Stops a model that would go on for ever, unless `limits` says otherwise. */
export const defaultLimits = { maxRequests: 50 };

/** Options that are passed on to the session and its engine, which check them. */
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

/** The same as `generate`, as a stream of what happens. */
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

/** The model and the tools it is offered, which may change from one request to the next. */
export interface Cast {
  readonly model: Model;
  readonly tools?: () => readonly ToolSpec[];
}

/** `hidden` are further tools of the engine. `cast` says which tools are offered. */
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
    // Checked against the schema before the turn ended. Without a schema it is undefined, as the type says.
    const value = ended.output as OutputOf<S>;
    return { text, output: value, usage, costUsd: session.costUsd, requests, calls, history: session.history };
  };
  const result = run();
  result.then(
    () => [events.end(), words.end()],
    // Reported there too, so that a caller who only reads a stream learns of it
    (error: unknown) => [events.fail(error), words.fail(error)],
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
