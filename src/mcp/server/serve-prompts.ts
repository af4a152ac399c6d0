import { ProtocolError, ProtocolErrorCode, type Server } from "@modelcontextprotocol/server";
import { defined } from "../../base/json.ts";
import { text } from "../../base/content.ts";
import { CallError } from "../../index.ts";
import { createAsk } from "../../runtime/ask.ts";
import { toBlock } from "./describe-tool.ts";
import { createClientAnswerer } from "./questions.ts";
import type { ElicitationChannel, MultiRound } from "./multi-round.ts";
import type { PromptText, ServedPrompt, ServedPrompts } from "./served-prompts.ts";

export interface ServePromptsOptions {
  readonly prompts: ServedPrompts;
  readonly multiRound: MultiRound;
  readonly follows: boolean;
}

/** Offers the prompts to one connection. Returns the function that stops doing so. */
export function servePrompts(server: Server, { prompts, multiRound, follows }: ServePromptsOptions): (() => void)[] {
  server.registerCapabilities({ prompts: { listChanged: true } });
  server.setRequestHandler("prompts/list", () => ({ prompts: prompts.list().map(describePrompt) }));
  server.setRequestHandler("prompts/get", async ({ params: { name, arguments: values = {} } }, ctx) => {
    const prompt = prompts.find(name);
    if (prompt === undefined) throw invalid(`there is no prompt ${name}`);
    const missing = prompt.arguments?.find((one) => one.required && !Object.hasOwn(values, one.name));
    if (missing !== undefined) throw invalid(`${name} needs the argument ${missing.name}`);
    const request = { key: `prompts/get ${name}`, client: server.getClientCapabilities(), ctx };
    const outcome = await multiRound.serve(request, (channel, signal) => fillIn(prompt, values, channel, signal));
    if ("asks" in outcome) return outcome.asks;
    return { description: prompt.description, messages: toMessages(outcome.done) };
  });
  return follows ? [prompts.onChange(() => void server.sendPromptListChanged().catch(() => undefined))] : [];
}

async function fillIn(
  prompt: ServedPrompt,
  values: Readonly<Record<string, string>>,
  channel: ElicitationChannel,
  signal: AbortSignal,
): Promise<PromptText> {
  const answerer = createClientAnswerer(channel);
  const ask = createAsk({ id: prompt.name, tool: prompt.name }, answerer, signal);
  try {
    return await prompt.get(values, { ask, signal });
  } catch (error) {
    if (!CallError.is(error)) throw error;
    throw answerer.lacked() ?? invalid(error.message);
  }
}

function describePrompt({ name, title, description, arguments: given = [] }: ServedPrompt) {
  return {
    name,
    description,
    ...defined({ title }),
    ...(given.length === 0 ? {} : { arguments: given.map(({ complete: _complete, ...argument }) => argument) }),
  };
}

function toMessages(filled: PromptText) {
  const messages = typeof filled === "string" ? [{ role: "user" as const, content: filled }] : filled;
  return messages.map(({ role, content }) => ({
    role,
    content: toBlock(typeof content === "string" ? text(content) : content),
  }));
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
