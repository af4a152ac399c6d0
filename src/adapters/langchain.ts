/** Entry of `callgate/langchain`: an engine's tools for LangChain and LangGraph, with its interrupts. */
import { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { partsToText, type Part } from "../base/content.ts";
import { checkOptions, optionsShape } from "../base/shape.ts";
import { isObject } from "../base/json.ts";
import type { Ended } from "../spec/call.ts";
import type { ApprovalRequest } from "../spec/stages.ts";
import type { FunctionSpec } from "../spec/model.ts";
import {
  adapterFields,
  closedSchema,
  createHostCalls,
  type AdapterOptions,
  type HostCall,
  type ToolHost,
} from "./calls.ts";

export type { CallStore, KeptCall } from "../store/call-store.ts";
export type { AdapterOptions, ToolHost } from "./calls.ts";

/** What `interrupt` shows. `new Command({ resume: { approved: true } })` is a yes, and any other answer is a no. */
export interface LangChainQuestion {
  readonly type: "callgate.approval";
  readonly toolCallId: string;
  readonly reason: string;
  readonly hash: string;
  /** The commands, the diff, and what the call may touch. */
  readonly request?: ApprovalRequest;
}

/**
 * The tools of an engine for `bindTools`, `ToolNode` and `createReactAgent`. A call that policy asks about
 * interrupts the graph, if LangGraph runs it with a checkpointer. LangGraph then runs the whole step again.
 * Calls of the step that have ended are remembered by thread and id, and return the same result without a
 * second run.
 */
export function toLangChainTools(engine: ToolHost, options: AdapterOptions = {}): DynamicStructuredTool[] {
  checkOptions("toLangChainTools", options, optionsShape<AdapterOptions>(adapterFields));
  const calls = createHostCalls(engine, { ...options, everyCallOnce: true });

  const run = async (spec: FunctionSpec, input: unknown, config: CallConfig) => {
    const call: HostCall = {
      id: config.toolCall?.id ?? crypto.randomUUID(),
      name: spec.name,
      input,
      ...(config.configurable?.thread_id === undefined ? {} : { thread: String(config.configurable.thread_id) }),
    };
    const question = await calls.question(call);
    const answer =
      question &&
      (await askGraph({
        type: "callgate.approval",
        toolCallId: call.id,
        reason: question.reason,
        hash: question.hash,
        ...(question.request ? { request: question.request } : {}),
      }));
    if (answer?.given === true && !isYes(answer.value)) return toMessage(calls.reject(call, wordsOf(answer.value)));
    const approved = answer?.given === true;
    return toMessage(await calls.run(call, { signal: config.signal, approved }));
  };

  return calls.tools().map(
    (spec) =>
      new DynamicStructuredTool({
        name: spec.name,
        description: spec.description,
        schema: closedSchema(spec.parameters),
        func: (input: unknown, _manager: unknown, config: unknown) => run(spec, input, config ?? {}),
      }),
  );
}

/** What LangChain passes to a tool's function besides its input. */
interface CallConfig {
  readonly toolCall?: { readonly id?: string };
  readonly signal?: AbortSignal;
  readonly configurable?: { readonly thread_id?: unknown };
}

/**
 * Throws if the graph stops here to ask. The answer is not given if there is no graph, because then nobody
 * can answer.
 */
async function askGraph(question: LangChainQuestion): Promise<{ given: boolean; value?: unknown }> {
  const graph = await import("@langchain/langgraph").catch(() => undefined);
  if (graph === undefined) return { given: false };
  try {
    return { given: true, value: graph.interrupt(question) };
  } catch (error) {
    if (graph.isGraphBubbleUp(error)) throw error;
    return { given: false };
  }
}

function isYes(answer: unknown): boolean {
  return answer === true || (isObject(answer) && answer["approved"] === true);
}

function wordsOf(answer: unknown): string | undefined {
  return isObject(answer) && typeof answer["message"] === "string" ? answer["message"] : undefined;
}

/** The message for the model. How the call ended is attached as a whole, for programs. */
function toMessage(ended: Ended): ToolMessage {
  return new ToolMessage({
    tool_call_id: ended.id,
    name: ended.name,
    status: ended.ok || typeof ended.exitCode === "number" ? "success" : "error",
    content: toContent(ended.content),
    artifact: ended,
  });
}

function toContent(content: readonly Part[]): string | { type: string }[] {
  if (content.every(({ type }) => type === "text")) return partsToText(content);
  return content.map((part): { type: string; [key: string]: string } => {
    if ((part.type === "image" || part.type === "audio" || part.type === "file") && part.data !== undefined)
      return {
        type: part.type,
        data: part.data,
        ...(part.mediaType === undefined ? {} : { mimeType: part.mediaType }),
      };
    if ((part.type === "image" || part.type === "file") && part.url !== undefined)
      return { type: part.type, url: part.url };
    return { type: "text", text: partsToText([part]) };
  });
}
