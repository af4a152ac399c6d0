/**
 * An agent for editors over the Agent Client Protocol, version 1. `acp/` knows the protocol and
 * sessions; how a session is made comes in as a function. Only this file and the types beside it name
 * the protocol's methods, so that supporting another version touches only them.
 */
import { agent, methods, RequestError, type AgentContext, type ClientCapabilities } from "@agentclientprotocol/sdk";
import type { InitializeResponse, Stream } from "@agentclientprotocol/sdk";
import { defined, isObject } from "../base/json.ts";
import { modelOption } from "./pickers.ts";
import { readPrompt } from "./prompt.ts";
import {
  opening,
  openRunning,
  playPrompt,
  setMode,
  type AcpHost,
  type From,
  type Given,
  type Running,
} from "./running.ts";
import { replayUpdates } from "./updates.ts";

export type { AcpCommand, AcpHost, OpenedSession, OpenOptions } from "./running.ts";

type Open = (to: AgentContext, given: Given, from?: From) => Promise<Running>;

/** Serves one editor until it disconnects. */
export function serveAcp(stream: Stream, host: AcpHost): { readonly closed: Promise<void> } {
  const sessions = new Map<string, Running>();
  let client: ClientCapabilities = {};

  const find = (id: string): Running => {
    const found = sessions.get(id);
    if (found === undefined) throw RequestError.sessionNotFound(id);
    return found;
  };

  const open: Open = async (to, given, from) => {
    const running = await openRunning(host, client, to, given, from);
    sessions.set(running.session.id, running);
    return running;
  };

  /** Model and engine are made again; conversation, mode and id stay. If that fails, things stay as they were. */
  const chooseModel = async (to: AgentContext, running: Running, model: string): Promise<Running> => {
    const { session, given, mode, model: before } = running;
    running.session.interrupt();
    await running.close();
    const opened = await open(to, given, { resume: session.id, model }).catch(async (error: unknown) => {
      await open(to, given, { resume: session.id, model: before });
      throw error;
    });
    setMode(opened, mode);
    return Object.assign(opened, defined({ modelNames: running.modelNames }));
  };

  const app = agent({ name: "callgate" })
    .onRequest(methods.agent.initialize, ({ params }) => {
      client = params.clientCapabilities ?? {};
      return describeAgent(host.version);
    })
    .onRequest(methods.agent.authenticate, () => ({}))
    .onRequest(methods.agent.session.new, async ({ params, client: to }) => {
      const running = await open(to, params);
      return { sessionId: running.session.id, ...(await opening(running)) };
    })
    .onRequest(methods.agent.session.load, async ({ params, client: to }) => {
      const running = sessions.get(params.sessionId) ?? (await open(to, params, { resume: params.sessionId }));
      for (const one of replayUpdates(running.session.history, params.cwd, running.plan)) await running.update(one);
      return opening(running);
    })
    .onRequest(methods.agent.session.resume, async ({ params, client: to }) =>
      opening(sessions.get(params.sessionId) ?? (await open(to, params, { resume: params.sessionId }))),
    )
    // Not in version 1 yet. Editors that know it find it announced.
    .onRequest("session/fork", { parse: readFork }, async ({ params, client: to }) => {
      const running = await open(to, params, { resume: params.sessionId, fork: true });
      return { sessionId: running.session.id, ...(await opening(running)) };
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
      setMode(find(params.sessionId), params.modeId);
      return {};
    })
    .onRequest(methods.agent.session.setConfigOption, async ({ params, client: to }) => {
      const running = find(params.sessionId);
      if (params.configId !== modelOption || typeof params.value !== "string")
        throw RequestError.invalidParams(undefined, `there is no option '${params.configId}' with such a value`);
      const chosen = params.value === running.model ? running : await chooseModel(to, running, params.value);
      return { configOptions: (await opening(chosen)).configOptions };
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

/** A part of the protocol's next version that editors look for already. */
const announced = { fork: {} };

function describeAgent(version: string): InitializeResponse {
  return {
    protocolVersion: 1,
    agentInfo: { name: "callgate", title: "Callgate", version: version },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: true, embeddedContext: true },
      mcpCapabilities: { http: true, sse: false },
      sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {}, additionalDirectories: {}, ...announced },
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

function readFork(params: unknown): Given & { readonly sessionId: string } {
  if (!isObject(params) || typeof params["sessionId"] !== "string" || typeof params["cwd"] !== "string")
    throw RequestError.invalidParams(undefined, "session/fork takes a sessionId and a cwd");
  const { sessionId, cwd, additionalDirectories, mcpServers } = params;
  // The shape of `session/new`, whose values are checked where they are used.
  return { sessionId, cwd, ...defined({ additionalDirectories, mcpServers }) } as Given & { sessionId: string };
}
