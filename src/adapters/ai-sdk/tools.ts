import type { ToolSet } from "ai";
import { partsToText, type Part } from "../../base/content.ts";
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { createQueue } from "../../base/queue.ts";
import { isObject, type Json } from "../../base/json.ts";
import type { Ended } from "../../spec/call.ts";
import type { ApprovalRequest } from "../../spec/stages.ts";
import type { FunctionSpec } from "../../spec/model.ts";
import { createRunningText } from "../../session/running-text.ts";
import { adapterFields, createHostCalls, failureOf, type AdapterOptions, type ToolHost } from "../calls.ts";

/**
 * What a tool returns to the AI SDK, for its callbacks, for `steps` and for a page. The model is told only
 * `content`.
 */
export interface AiSdkOutput {
  /** `running` has what the call has printed or reported so far. The next output replaces it. */
  readonly status: "running" | "done";
  readonly text: string;
  readonly content: readonly Part[];
  readonly structured?: Json;
  readonly exitCode?: number | null;
}

/** How a call is named in the callbacks of the AI SDK. */
interface CallOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal | undefined;
  readonly messages?: readonly { readonly content: unknown }[];
}

type Approval = { readonly type: "user-approval"; readonly reason: string } | undefined;

/** Our tools in the form of the AI SDK, with their approvals. */
export interface AiSdkTools {
  /** For `tools` of `generateText`, `streamText` and agents. */
  readonly tools: ToolSet;
  /** For `toolApproval` of AI SDK 7, which also shows the reason. AI SDK 6 asks the tools themselves. */
  readonly toolApproval: Readonly<Record<string, (input: unknown, options: CallOptions) => Promise<Approval>>>;
  /**
   * The whole question about a call that waits, for a page that shows it: commands, diff, and what the call
   * may touch.
   */
  question(call: {
    readonly toolCallId: string;
    readonly toolName: string;
    readonly input: unknown;
  }): Promise<ApprovalRequest | undefined>;
}

/**
 * The tools of an engine for the AI SDK. A call that policy asks about ends the step with an approval
 * request, and the answer is valid for exactly that call. A call that fails throws, so that the SDK shows
 * it as an error.
 */
export function toAiSdkTools(engine: ToolHost, options: AdapterOptions = {}): AiSdkTools {
  checkOptions("toAiSdkTools", options, optionsShape<AdapterOptions>(adapterFields));
  const calls = createHostCalls(engine, options);
  const specs = calls.tools();
  const ask = (name: string, input: unknown, { toolCallId, messages = [] }: CallOptions) =>
    calls.question({ id: toolCallId, name, input }, { answered: isAnswered(toolCallId, messages) });

  const toTool = (spec: FunctionSpec) => ({
    type: "dynamic" as const,
    description: spec.description,
    inputSchema: toAiSdkSchema(spec),
    needsApproval: async (input: unknown, how: CallOptions) => (await ask(spec.name, input, how)) !== undefined,
    async *execute(input: unknown, { toolCallId, abortSignal }: CallOptions): AsyncGenerator<AiSdkOutput> {
      const running = createRunningText();
      const said = createQueue<AiSdkOutput>();
      const run = calls
        .run(
          { id: toolCallId, name: spec.name, input },
          {
            signal: abortSignal,
            // The SDK runs a tool only if nobody had to be asked or the answer was yes.
            approved: true,
            onEvent(event) {
              const text = running.add(event);
              if (text !== undefined) said.push({ status: "running", text, content: [] });
            },
          },
        )
        .finally(said.end);
      yield* said;
      yield toOutput(await run);
    },
    toModelOutput: ({ output }: { readonly output: unknown }) => ({
      type: "content" as const,
      // The output was made by `execute` above.
      value: (output as AiSdkOutput).content.map(toModelPart),
    }),
  });

  return {
    // The SDK's type has a branch for every kind of tool. These are functions with a hand-made schema.
    tools: Object.fromEntries(specs.map((spec) => [spec.name, toTool(spec)])) as unknown as ToolSet,
    toolApproval: Object.fromEntries(
      specs.map((spec) => [
        spec.name,
        async (input: unknown, how: CallOptions): Promise<Approval> => {
          const open = await ask(spec.name, input, how);
          return open && { type: "user-approval", reason: open.reason };
        },
      ]),
    ),
    question: async ({ toolCallId, toolName, input }) => (await ask(toolName, input, { toolCallId }))?.request,
  };
}

/** Whether the messages contain an answer to the question about this call. */
function isAnswered(toolCallId: string, messages: NonNullable<CallOptions["messages"]>): boolean {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content.filter(isObject) : []));
  const asked = parts.filter((part) => part["type"] === "tool-approval-request" && part["toolCallId"] === toolCallId);
  const ids = new Set(asked.map((part) => part["approvalId"]));
  return parts.some((part) => part["type"] === "tool-approval-response" && ids.has(part["approvalId"]));
}

function toOutput(ended: Ended): AiSdkOutput {
  const failure = failureOf(ended);
  if (failure !== undefined) throw failure;
  const { content, structured, exitCode } = ended;
  return {
    status: "done",
    text: partsToText(content.filter(({ type }) => type === "text")),
    content,
    ...(structured === undefined ? {} : { structured }),
    ...(exitCode === undefined ? {} : { exitCode }),
  };
}

/** A schema as the SDK's `jsonSchema()` makes it. The engine checks the input and explains what is wrong with it. */
function toAiSdkSchema({ parameters }: FunctionSpec) {
  return {
    [Symbol.for("vercel.ai.schema")]: true,
    _type: undefined,
    jsonSchema: parameters,
    validate: undefined,
  };
}

/** The spelling that both AI SDK 6 and 7 read. */
function toModelPart(part: Part) {
  switch (part.type) {
    case "text":
      return { type: "text" as const, text: part.text };
    case "image":
      if (part.data !== undefined)
        return { type: "image-data" as const, data: part.data, mediaType: part.mediaType ?? "image/png" };
      if (part.url !== undefined) return { type: "image-url" as const, url: part.url };
      break;
    case "audio":
      return { type: "file-data" as const, data: part.data, mediaType: part.mediaType };
    case "file":
      if (part.data !== undefined)
        return {
          type: "file-data" as const,
          data: part.data,
          mediaType: part.mediaType ?? "application/octet-stream",
          ...(part.name === undefined ? {} : { filename: part.name }),
        };
      if (part.url !== undefined) return { type: "file-url" as const, url: part.url };
      break;
    case "resource":
      break;
  }
  return { type: "text" as const, text: partsToText([part]) };
}
