/** One session that an editor has open: how it is opened, what the editor is told about it, and how a prompt is run. */
import { methods, RequestError, type AgentContext, type ClientCapabilities } from "@agentclientprotocol/sdk";
import type {
  McpServer,
  PromptResponse,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import { partsToText } from "../base/content.ts";
import type { Json } from "../base/json.ts";
import type { PolicyNames } from "../gate/modes.ts";
import type { Engine } from "../router/engine.ts";
import type { TurnEnded } from "../session/events.ts";
import type { Session } from "../session/session.ts";
import type { Approver } from "../spec/stages.ts";
import { createApprover } from "./approver.ts";
import { configOptions, modelNames, modes, modeState } from "./pickers.ts";
import { readMcpServers, type readPrompt } from "./prompt.ts";
import { readUnsaved } from "./unsaved.ts";
import { chunk, createUpdates } from "./updates.ts";

/** What can be typed after a slash. */
export interface AcpCommand {
  readonly name: string;
  readonly description: string;
  readonly hint?: string;
  /** Text for the person, or a prompt for the model. */
  run(argument: string, opened: OpenedSession): Promise<{ readonly say?: string; readonly prompt?: string }>;
}

export interface OpenedSession {
  readonly session: Session;
  readonly engine: Engine;
  readonly contextWindow?: number;
  readonly model: string;
  /** The names that the model's server lists, for choosing another. */
  readonly models: () => Promise<readonly string[]>;
  /** The policy of the settings, in which a session begins. */
  readonly policy: PolicyNames;
  readonly commands: readonly AcpCommand[];
  /** As the journal has it, for a session that is continued. */
  readonly plan?: Json;
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly mcpServers: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The id of the session to continue. */
  readonly resume?: string;
  /** Continue a copy of it, under a new id. */
  readonly fork?: boolean;
  /** The model, where the person chose one. */
  readonly model?: string;
  readonly approver: Approver;
  /** Shows a warning to the person. */
  readonly warn: (message: string) => void;
}

export interface AcpHost {
  readonly version: string;
  open(options: OpenOptions): Promise<OpenedSession>;
  list(cwd: string | undefined): readonly { id: string; cwd: string; title: string; updatedAt: string }[];
  remove(id: string): void;
}

export interface Running extends OpenedSession {
  readonly given: Given;
  readonly update: (update: SessionUpdate) => Promise<void>;
  mode: string;
  /** Asked for once, because the list is long at some servers. */
  modelNames?: readonly string[];
}

/** What an editor is told of a session that has just been opened. */
export interface Opening {
  readonly modes: SessionModeState;
  readonly configOptions: SessionConfigOption[];
}

export interface Given {
  readonly cwd: string;
  readonly additionalDirectories?: string[];
  readonly mcpServers?: McpServer[];
}
export type From = Pick<OpenOptions, "resume" | "fork" | "model">;

export function setMode(running: Running, id: string): void {
  const mode = modes.find((one) => one.id === id);
  if (mode === undefined) throw RequestError.invalidParams(undefined, `there is no mode '${id}'`);
  running.engine.setPolicy(mode.policy ?? running.policy);
  running.mode = mode.id;
}

export async function opening(running: Running): Promise<Opening> {
  const { mode, model } = running;
  running.modelNames ??= await modelNames(model, running.models);
  const names = running.modelNames.includes(model) ? running.modelNames : [model, ...running.modelNames];
  return { modes: modeState(mode), configOptions: configOptions(model, names) };
}

/** A session that tells the editor everything that happens in it. */
export async function openRunning(
  host: AcpHost,
  client: ClientCapabilities,
  to: AgentContext,
  given: Given,
  from: From = {},
): Promise<Running> {
  let id = from.fork === true ? undefined : from.resume;
  const early: string[] = [];
  const update = (one: SessionUpdate) =>
    id === undefined ? Promise.resolve() : to.notify(methods.client.session.update, { sessionId: id, update: one });
  const warn = (message: string) => {
    if (id === undefined) early.push(message);
    else void update({ sessionUpdate: "notice", severity: "warning", title: message });
  };
  const approver = createApprover(
    to,
    () => id ?? "",
    given.cwd,
    () => client,
  );
  const opened = await host
    .open({
      cwd: given.cwd,
      additionalDirectories: given.additionalDirectories ?? [],
      mcpServers: readMcpServers(given.mcpServers ?? []),
      ...from,
      approver,
      warn,
    })
    .catch((error: unknown) => {
      throw RequestError.invalidParams(undefined, error instanceof Error ? error.message : String(error));
    });
  id = opened.session.id;
  if (client.fs?.readTextFile === true) readUnsaved(opened.engine, to, id);
  const running: Running = { ...opened, given, update, mode: "default" };
  const updates = createUpdates({
    cwd: given.cwd,
    terminalOutput: client._meta?.["terminal_output"] === true,
    ...(opened.contextWindow === undefined ? {} : { contextWindow: opened.contextWindow }),
  });
  opened.session.on((event) => {
    for (const one of updates(event)) void update(one);
  });
  // After the answer to the request, which tells the editor the id.
  setImmediate(() => {
    for (const message of early) warn(message);
    void update({
      sessionUpdate: "available_commands_update",
      availableCommands: opened.commands.map(({ name, description, hint }) => ({
        name,
        description,
        ...(hint === undefined ? {} : { input: { hint } }),
      })),
    });
  });
  return running;
}

/** One turn; a slash command may answer by itself. Blocks until the turn has ended, as version 1 requires. */
export async function playPrompt(running: Running, given: ReturnType<typeof readPrompt>): Promise<PromptResponse> {
  const [first] = given;
  const slash = first?.type === "text" ? /^\/([\w:-]+)(?:\s+([\s\S]*))?$/.exec(first.text.trim()) : null;
  const command = slash && running.commands.find(({ name }) => name === slash[1]);
  let prompt = given;
  if (command) {
    const { say, prompt: words } = await command.run(slash[2] ?? "", running);
    if (say !== undefined) await running.update(chunk("agent_message_chunk", say));
    if (words === undefined) return { stopReason: "end_turn" };
    prompt = [{ type: "text", text: words }, ...given.slice(1)];
  }
  if (partsToText(prompt).trim() === "") throw RequestError.invalidParams(undefined, "the prompt is empty");
  let ended: TurnEnded | undefined;
  for await (const event of running.session.send(prompt)) if (event.type === "turn.ended") ended = event;
  switch (ended?.reason) {
    case "done":
      return { stopReason: "end_turn" };
    case "interrupted":
    case "stopped":
      return { stopReason: "cancelled" };
    case "limit":
    case "loop":
      await running.update({
        sessionUpdate: "notice",
        severity: "warning",
        title: ended.detail ?? "The turn was ended.",
      });
      return { stopReason: "max_turn_requests" };
    default:
      throw RequestError.internalError(undefined, ended?.detail ?? "The turn did not end.");
  }
}
