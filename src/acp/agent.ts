/**
 * An agent for editors over the Agent Client Protocol, version 1. `acp/` knows the protocol and sessions; what a session
 * is made of comes in as a function. Only this file and the types beside it name the protocol's methods, so that another
 * version is another edge.
 */
import { agent, methods, RequestError, type AgentContext, type ClientCapabilities } from "@agentclientprotocol/sdk";
import type {
  InitializeResponse,
  McpServer,
  PromptResponse,
  SessionModeState,
  SessionUpdate,
  Stream,
} from "@agentclientprotocol/sdk";
import { partsToText } from "../base/content.ts";
import type { Json } from "../base/json.ts";
import type { PolicyNames } from "../gate/modes.ts";
import type { Engine } from "../router/engine.ts";
import type { Session } from "../session/session.ts";
import type { TurnEnded } from "../session/events.ts";
import type { Approver } from "../spec/stages.ts";
import { createApprover } from "./approver.ts";
import { modes } from "./permission.ts";
import { readMcpServers, readPrompt } from "./prompt.ts";
import { readUnsaved } from "./unsaved.ts";
import { chunk, createUpdates, replayUpdates } from "./updates.ts";

/** What can be typed after a slash. */
export interface AcpCommand {
  readonly name: string;
  readonly description: string;
  readonly hint?: string;
  /** Words for the person, or a prompt for the model. */
  run(argument: string, opened: OpenedSession): Promise<{ readonly say?: string; readonly prompt?: string }>;
}

export interface OpenedSession {
  readonly session: Session;
  readonly engine: Engine;
  readonly contextWindow?: number;
  /** The policy the settings ask for: the mode a session begins in. */
  readonly policy: PolicyNames;
  readonly commands: readonly AcpCommand[];
  /** As the journal has it, for a session that goes on. */
  readonly plan?: Json;
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly mcpServers: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The id of the session to go on with. */
  readonly resume?: string;
  readonly approver: Approver;
  /** Told to the person. */
  readonly warn: (message: string) => void;
}

export interface AcpHost {
  readonly version: string;
  open(options: OpenOptions): Promise<OpenedSession>;
  list(cwd: string | undefined): readonly { id: string; cwd: string; title: string; updatedAt: string }[];
  remove(id: string): void;
}

interface Running extends OpenedSession {
  readonly update: (update: SessionUpdate) => Promise<void>;
  mode: string;
}

/** Serves one editor until it is gone. */
export function serveAcp(stream: Stream, host: AcpHost): { readonly closed: Promise<void> } {
  const sessions = new Map<string, Running>();
  let client: ClientCapabilities = {};

  const find = (id: string): Running => {
    const found = sessions.get(id);
    if (found === undefined) throw RequestError.sessionNotFound(id);
    return found;
  };

  const open: Open = async (to, given, resume) => {
    const running = await openRunning(host, client, to, given, resume);
    sessions.set(running.session.id, running);
    return running;
  };

  const app = agent({ name: "callgate" })
    .onRequest(methods.agent.initialize, ({ params }) => {
      client = params.clientCapabilities ?? {};
      return describeAgent(host.version);
    })
    .onRequest(methods.agent.authenticate, () => ({}))
    .onRequest(methods.agent.session.new, async ({ params, client: to }) => {
      const running = await open(to, params);
      return { sessionId: running.session.id, modes: modeState(running) };
    })
    .onRequest(methods.agent.session.load, async ({ params, client: to }) => {
      const running = sessions.get(params.sessionId) ?? (await open(to, params, params.sessionId));
      for (const one of replayUpdates(running.session.history, params.cwd, running.plan)) await running.update(one);
      return { modes: modeState(running) };
    })
    .onRequest(methods.agent.session.resume, async ({ params, client: to }) => {
      const running = sessions.get(params.sessionId) ?? (await open(to, params, params.sessionId));
      return { modes: modeState(running) };
    })
    .onRequest(methods.agent.session.list, ({ params }) => ({
      sessions: host
        .list(params.cwd ?? undefined)
        .map(({ id, cwd, title, updatedAt }) => ({ sessionId: id, cwd, title, updatedAt })),
    }))
    .onRequest(methods.agent.session.close, async ({ params }) => {
      const running = find(params.sessionId);
      sessions.delete(params.sessionId);
      await running.close();
      return {};
    })
    .onRequest(methods.agent.session.delete, async ({ params }) => {
      const running = sessions.get(params.sessionId);
      sessions.delete(params.sessionId);
      await running?.close();
      host.remove(params.sessionId);
      return {};
    })
    .onRequest(methods.agent.session.setMode, ({ params }) => {
      const running = find(params.sessionId);
      const mode = modes.find(({ id }) => id === params.modeId);
      if (mode === undefined) throw RequestError.invalidParams(undefined, `there is no mode '${params.modeId}'`);
      running.engine.setPolicy(mode.policy ?? running.policy);
      running.mode = mode.id;
      return {};
    })
    .onRequest(methods.agent.session.prompt, async ({ params, signal }) => {
      const running = find(params.sessionId);
      const stop = () => running.session.interrupt();
      signal.addEventListener("abort", stop);
      try {
        return await playPrompt(running, readPrompt(params.prompt));
      } finally {
        signal.removeEventListener("abort", stop);
      }
    })
    .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.session.interrupt());

  const connection = app.connect(stream);
  return {
    closed: connection.closed.finally(async () => {
      const left = [...sessions.values()];
      sessions.clear();
      await Promise.allSettled(left.map((running) => running.close()));
    }),
  };
}

function describeAgent(version: string): InitializeResponse {
  return {
    protocolVersion: 1,
    agentInfo: { name: "callgate", title: "Callgate", version: version },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: true, embeddedContext: true },
      mcpCapabilities: { http: true, sse: false },
      sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {}, additionalDirectories: {} },
    },
    authMethods: [
      {
        type: "terminal",
        id: "init",
        name: "Choose a model",
        description: "Asks for a provider, a model and a key",
        args: ["init"],
      },
    ],
  };
}

interface Given {
  readonly cwd: string;
  readonly additionalDirectories?: string[];
  readonly mcpServers?: McpServer[];
}
type Open = (to: AgentContext, given: Given, resume?: string) => Promise<Running>;

/** A session that tells the editor everything that happens in it. */
async function openRunning(
  host: AcpHost,
  client: ClientCapabilities,
  to: AgentContext,
  given: Given,
  resume: string | undefined,
): Promise<Running> {
  let id = resume;
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
      ...(resume === undefined ? {} : { resume }),
      approver,
      warn,
    })
    .catch((error: unknown) => {
      throw RequestError.invalidParams(undefined, error instanceof Error ? error.message : String(error));
    });
  id = opened.session.id;
  if (client.fs?.readTextFile === true) readUnsaved(opened.engine, to, id);
  const running: Running = { ...opened, update, mode: "default" };
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

function modeState({ mode }: Running): SessionModeState {
  return {
    currentModeId: mode,
    availableModes: modes.map(({ id, name, description }) => ({ id, name, description })),
  };
}

/** One turn; a slash command may answer by itself. Blocks until the turn has ended, as version 1 wants it. */
async function playPrompt(running: Running, given: ReturnType<typeof readPrompt>): Promise<PromptResponse> {
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
