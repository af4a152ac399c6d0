/**
 * An agent: a model with its instructions and tools, under a name. It can be asked, be a tool of
 * another agent, or take over a conversation from one. As a tool it has limits of its own, and its
 * calls belong to the agent that asked: they are judged by the same rules and recorded in the same
 * journal, with the agent's call as their parent.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { text } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { defined, isObject, parseJson, type Json } from "../base/json.ts";
import { createRegistry } from "../registry/registry.ts";
import { defineTool } from "../registry/define.ts";
import { toToolSpecs } from "../registry/tool-spec.ts";
import { coerce } from "../schema/coerce.ts";
import { toSchema } from "../schema/schema.ts";
import type { Ended } from "../spec/call.ts";
import { isFreeform } from "../spec/freeform.ts";
import type { InputSchema } from "../spec/infer.ts";
import type { CallItem, Item, MessageItem, Model } from "../spec/model.ts";
import { result } from "../spec/result.ts";
import type { AnyTool, CallOutcome, ToolContext, ToolOutput } from "../spec/tool.ts";
import { createAnswerCheck } from "./answer-check.ts";
import {
  defaultLimits,
  play,
  type Generated,
  type GenerateOptions,
  sessionFields,
  type GenerateStream,
  type OutputOf,
} from "./generate.ts";
import { toAsked } from "./turn-host.ts";
import { addUsage, noLimits, noUsage } from "./limits.ts";
import { runTurn, userMessage, type TurnHost } from "./turn.ts";

/** Options of `createAgent`. */
export interface AgentOptions<S extends InputSchema = InputSchema> extends Omit<
  GenerateOptions<S>,
  "prompt" | "signal" | "engine"
> {
  /** The name that other agents know it by. */
  readonly name: string;
  /** What it is good for. The agents that may ask it or hand over to it are told this. */
  readonly description: string;
  /** Agents it may ask. Each is a tool that takes a task and returns a result. */
  readonly agents?: readonly Agent[];
  /**
   * Agents to which it may hand over the conversation. They continue with all of it, and this agent
   * takes no further part.
   */
  readonly handOffs?: readonly Agent[];
}

/** A model with tools and instructions that can be asked, or used as a tool of another. */
export interface Agent<Output = unknown> {
  readonly name: string;
  readonly description: string;
  readonly options: AgentOptions;
  /** Every tool that its calls may reach, including those of the agents it asks. */
  readonly tools: readonly AnyTool[];
  generate(prompt: string | MessageItem["content"], options?: AskAgent): Promise<Generated<Output>>;
  stream(prompt: string | MessageItem["content"], options?: AskAgent): GenerateStream<Output>;
  /**
   * The agent as a tool of any engine that also has its `tools`. A call of it runs the agent's own loop;
   * calls that the agent makes are children of that call.
   */
  asTool(): AnyTool;
}

/** Options for one question to an agent. */
export interface AskAgent {
  readonly signal?: AbortSignal;
}

const agentShape = optionsShape<AgentOptions>(
  {
    name: "string",
    description: "string",
    agents: { list: "any" },
    handOffs: { list: "any" },
    model: "any",
    tools: "any",
    output: "any",
    ...sessionFields,
  },
  "name",
  "description",
  "model",
);

/** Creates an agent, which can be asked by itself, given to another as a tool, or handed a conversation. */
export function createAgent<const S extends InputSchema = InputSchema>(options: AgentOptions<S>): Agent<OutputOf<S>> {
  checkOptions("createAgent", options, agentShape);
  const { name, description, agents = [], handOffs = [] } = options;
  if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name))
    throw new TypeError(`createAgent: the name '${name}' is not letters, digits, '_' and '-', beginning with a letter`);
  const own = [...(options.tools ?? []), ...agents.map((agent) => agent.asTool())];
  const tools = unique([...own, ...agents.flatMap((agent) => agent.tools)]);
  const registry = createRegistry(own); // two tools with the same name are a mistake, reported here
  const asked = (prompt: GenerateOptions["prompt"], { signal }: AskAgent = {}) => {
    const { name: _name, description: _description, agents: _agents, handOffs: _handOffs, ...rest } = options;
    return handingOver(made, { ...rest, prompt, ...defined({ signal }) });
  };
  // The agent itself keeps the schema's type. Whoever only asks it or hands over to it does not need the type.
  const made: Agent<OutputOf<S>> = {
    name,
    description,
    options,
    tools,
    generate: (prompt, how) => asked(prompt, how).result,
    stream: asked,
    asTool() {
      if (handOffs.length > 0)
        throw new TypeError(`createAgent: '${name}' hands over to others, so that it cannot be a tool: ask them too`);
      return defineTool({
        name,
        description,
        input: {
          type: "object",
          properties: { task: { type: "string", description: "What to do, with everything it needs to know." } },
          required: ["task"],
          additionalProperties: false,
        },
        parallel: true,
        ...(options.limits?.maxMs === undefined ? {} : { timeoutMs: options.limits.maxMs }),
        run: ({ task }, ctx) => runInside(made.options, registry.find, own, task, ctx),
      });
    },
  };
  return made;
}

function unique(tools: readonly AnyTool[]): readonly AnyTool[] {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return [...byName.values()];
}

/**
 * The conversation with whichever agent has it at the moment. Handing over changes the model, the
 * instructions and the tools.
 */
function handingOver<S extends InputSchema>(first: Agent<OutputOf<S>>, options: GenerateOptions<S>) {
  const all = new Map<string, Agent>();
  const collect = (agent: Agent) => {
    if (all.has(agent.name)) return;
    all.set(agent.name, agent);
    for (const other of agent.options.handOffs ?? []) collect(other);
  };
  collect(first);
  let current: Agent = first;
  const hands = [...all.values()].map((agent) =>
    defineTool({
      name: `hand_off_to_${agent.name}`,
      description: `Hands the conversation over to ${agent.name}: ${agent.description}`,
      input: { type: "object", properties: {}, additionalProperties: false },
      run() {
        current = agent;
        return `${agent.name} goes on from here.`;
      },
    }),
  );
  const tools = unique([...all.values()].flatMap((agent) => agent.tools));
  const model: Model = {
    name: first.options.model.name,
    ask(request, signal, how) {
      const { instructions: _first, ...rest } = request;
      const { model: own, instructions } = current.options;
      return own.ask({ ...rest, model: own.name, ...defined({ instructions }) }, signal, how);
    },
  };
  return play(
    { ...options, tools },
    (engine) => ({
      model,
      tools: () =>
        toToolSpecs(engine, {
          only: [
            ...(current.options.tools ?? []).map(({ name }) => name),
            ...(current.options.agents ?? []).map(({ name }) => name),
            ...(current.options.handOffs ?? []).map(({ name }) => `hand_off_to_${name}`),
          ],
        }),
    }),
    all.size > 1 ? hands : [],
  );
}

/** The agent's own loop inside a call, with its model and limits; its calls are children of this call. */
async function runInside(
  options: AgentOptions,
  find: (name: string, namespace?: string) => AnyTool | undefined,
  tools: readonly AnyTool[],
  task: string,
  ctx: ToolContext,
): Promise<ToolOutput> {
  const history: Item[] = [userMessage(task)];
  const specs = toToolSpecs(tools);
  const answers = createAnswerCheck(options);
  const startedAt = Date.now();
  let usage = noUsage;
  let requests = 0;
  let calls = 0;
  const host: TurnHost = {
    limits: { ...noLimits, ...defaultLimits, ...options.limits },
    signal: ctx.signal,
    now: Date.now,
    emit(event) {
      if (event.type === "warning") ctx.log.warn(event.message);
    },
    warnOnce: (message) => ctx.log.warn(message),
    add(item) {
      history.push(item);
      if (item.type === "message" && item.role === "assistant") ctx.progress({ message: wordsOf(item) });
    },
    buildRequest: () => ({
      parallel: true,
      toolChoice: "auto",
      ...options.request,
      model: options.model.name,
      ...defined({ instructions: options.instructions, outputSchema: answers?.wanted }),
      input: history,
      tools: specs,
    }),
    async ask(request) {
      requests++;
      return options.model.ask(request, ctx.signal);
    },
    ownIds: () => (event) => event,
    async call(item) {
      calls++;
      const tool = find(item.name, item.namespace);
      if (tool === undefined) return ended(item, unknownTool(item, tools));
      return ended(item, await ctx.call(tool.name, inputOf(item, tool)));
    },
    refuse: async (item, error) => ended(item, toOutcome(item, error)),
    isPaused: () => false,
    takeSteering: () => [],
    hasSteering: () => false,
    ...(answers === undefined ? {} : { checkAnswer: answers.start() }),
    compactIfNeeded: async () => false,
    spent: () => ({ requests, calls, usage, costUsd: 0, ms: Date.now() - startedAt }),
    answered(answer) {
      if (answer.usage !== undefined) usage = addUsage(usage, answer.usage);
    },
    isRetryable: options.isRetryable ?? (() => false),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  };
  const end = await runTurn(host);
  ctx.progress({ message: `${options.name} is done.`, data: { usage: { ...usage }, requests, calls } });
  if (end.reason === "interrupted") throw new CallError("aborted", "The agent was interrupted.");
  if (end.reason !== "done")
    throw new CallError("failed", `The agent ended without a result: ${end.detail ?? end.reason}`, {
      hint: "Give it a smaller task, or do it yourself.",
    });
  return end.output === undefined ? end.text : result({ content: end.text, structured: end.output });
}

function wordsOf({ content }: MessageItem): string {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/**
 * The input as the model wrote it. If it came from text without types, it is converted as the tool's
 * schema requires.
 */
function inputOf(item: CallItem, tool: AnyTool): Json {
  const read = isFreeform(tool.input) ? undefined : parseJson(item.arguments);
  // If it is not JSON, the check stage reports it
  if (read?.ok !== true || isFreeform(tool.input)) return item.arguments;
  // Coercion turns JSON values into other JSON values.
  return item.untyped && isObject(read.value)
    ? (coerce(read.value, toSchema(tool.input).json, []) as Json)
    : read.value;
}

type Told = Pick<CallOutcome, "ok" | "content" | "structured"> & { readonly code?: string };

/** The ending under the id that the agent's model knows. */
function ended(item: CallItem, outcome: Told): Ended {
  const now = Date.now();
  const { ok, content, structured } = outcome;
  const code = outcome.code as Ended["code"]; // a call's outcome has the codes of a CallError
  return { ...toAsked(item, now), ok, content, ...defined({ code, structured }), endedAt: now, durationMs: 0 };
}

function toOutcome(_item: CallItem, error: CallError): Told {
  const hint = error.hint === undefined ? "" : ` ${error.hint}`;
  return { ok: false, code: error.code, content: [text(`Error: ${error.message}${hint}`)] };
}

function unknownTool(item: CallItem, tools: readonly AnyTool[]): Told {
  const names = tools.map(({ name }) => name).join(", ");
  return toOutcome(item, new CallError("unknown_tool", `Unknown tool: ${item.name}. Available tools: ${names}.`));
}
