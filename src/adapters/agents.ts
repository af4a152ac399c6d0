/** Entry of `callgate/agents`: an engine's tools for the OpenAI Agents SDK, with its interruptions. */
import type { FunctionTool, RunContext } from "@openai/agents-core";
import { partsToText, type Part } from "../base/content.ts";
import { checkOptions, optionsShape } from "../base/shape.ts";
import type { ApprovalRequest } from "../spec/stages.ts";
import type { FunctionSpec } from "../spec/model.ts";
import { adapterFields, closedSchema, createHostCalls, type AdapterOptions, type ToolHost } from "./calls.ts";

export type { CallStore, KeptCall } from "../store/call-store.ts";
export type { AdapterOptions, ToolHost } from "./calls.ts";

/** Options of `toAgentsTools`. */
export interface AgentsOptions extends AdapterOptions {
  /**
   * Called with the question about a call that now waits (`result.interruptions`): its commands, its diff,
   * and what it may touch.
   */
  readonly onQuestion?: (request: ApprovalRequest) => void;
}

/**
 * The tools of an engine for `new Agent({ tools })`. A call that policy asks about becomes an interruption.
 * The state may be turned to text and back, also in another process, and `state.approve` is valid for
 * exactly the call it was given for.
 */
export function toAgentsTools(engine: ToolHost, options: AgentsOptions = {}): FunctionTool[] {
  checkOptions("toAgentsTools", options, optionsShape<AgentsOptions>({ ...adapterFields, onQuestion: "function" }));
  const calls = createHostCalls(engine, options);
  const toTool = ({ name, description, parameters }: FunctionSpec) => ({
    type: "function" as const,
    name,
    description,
    parameters: closedSchema(parameters),
    // Strict mode wants every property to be required. The engine checks the input against the schema that
    // the tool's author wrote.
    strict: false,
    isEnabled: async () => true,
    async needsApproval(context: RunContext<unknown>, input: unknown, callId = "") {
      const answered = context.isToolApproved({ toolName: name, callId }) !== undefined;
      const question = await calls.question({ id: callId, name, input }, { answered });
      if (!answered && question?.request !== undefined) options.onQuestion?.(question.request);
      return question !== undefined;
    },
    async invoke(_context: unknown, input: string, details: CallDetails = {}) {
      const id = details.toolCall?.callId ?? crypto.randomUUID();
      const ended = await calls.run({ id, name, input: readInput(input) }, { signal: details.signal, approved: true });
      return ended.ok ? toOutput(ended.content) : partsToText(ended.content);
    },
  });
  // The SDK has a type of its own for JSON Schemas, and this schema is one.
  return calls.tools().map((spec) => toTool(spec) as unknown as FunctionTool);
}

interface CallDetails {
  readonly toolCall?: { readonly callId?: string };
  readonly signal?: AbortSignal;
}

/** Input that is not JSON is passed on as text. The engine then tells the model where the JSON breaks off. */
function readInput(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text) as unknown;
  } catch {
    return text;
  }
}

function toOutput(content: readonly Part[]) {
  if (content.every(({ type }) => type === "text")) return partsToText(content);
  return content.map((part) => {
    if (part.type === "image" && part.data !== undefined)
      return { type: "image", image: { data: part.data, mediaType: part.mediaType ?? "image/png" } };
    if (part.type === "image" && part.url !== undefined) return { type: "image", image: { url: part.url } };
    if (part.type === "file" && part.data !== undefined)
      return {
        type: "file",
        file: {
          data: part.data,
          mediaType: part.mediaType ?? "application/octet-stream",
          filename: part.name ?? "file",
        },
      };
    return { type: "text", text: partsToText([part]) };
  });
}
