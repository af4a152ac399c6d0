/**
 * Many conversations behind one function, for your own server: it takes a message and returns simple
 * chunks. Each conversation is a session with its journal. It is opened when a message comes, and
 * closed after it has been idle.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { defined } from "../base/json.ts";
import { partsToText } from "../base/content.ts";
import type { Engine } from "../router/engine.ts";
import type { Item, MessageItem, Model, ToolSpec, Usage } from "../spec/model.ts";
import type { Approver } from "../spec/stages.ts";
import type { ConversationStore } from "./conversation-store.ts";
import type { SessionEvent, TurnEndReason } from "./events.ts";
import { rebuildHistory } from "./history.ts";
import { createSession, type Session } from "./session.ts";
import type { SessionOptions } from "./session-options.ts";

/** Options of `createChatService`. */
export interface ChatServiceOptions extends Pick<
  SessionOptions,
  "instructions" | "limits" | "offer" | "price" | "contextWindow" | "request" | "isRetryable"
> {
  /** The engine of all conversations. It stays open. */
  readonly engine: Engine;
  /** One model for all conversations, or one for each. */
  readonly model: Model | ((conversationId: string) => Model);
  /** Who is asked in a conversation. Left out: the engine's approver for all of them. */
  readonly approver?: (conversationId: string) => Approver | undefined;
  /** Where conversations are kept. Left out: in memory, until the service is closed. */
  readonly store?: ConversationStore;
  /**
   * Which tools the models are offered. Left out: the engine's tools, and of the built-in ones those of
   * the model's profile.
   */
  readonly tools?: () => readonly ToolSpec[];
  /** How many conversations stay open between messages. The others are read again from the store. */
  readonly maxOpen?: number;
}

/** What a client needs to see, and no more. */
export type ChatChunk =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "tool_call"; readonly id: string; readonly name: string; readonly arguments: string }
  | {
      readonly type: "tool_result";
      readonly id: string;
      readonly name: string;
      readonly ok: boolean;
      readonly content: string;
    }
  | { readonly type: "error"; readonly message: string }
  /** The last chunk if calls wait for a later answer. Sending another message gives them up. */
  | { readonly type: "waiting"; readonly calls: readonly string[] }
  | {
      readonly type: "done";
      readonly reason: TurnEndReason;
      /** The last text of the model. */
      readonly text: string;
      readonly calls: number;
      readonly usage: Usage;
    };

/** Conversations of many users over one engine, each message answered as a stream of chunks. */
export interface ChatService {
  /**
   * One message and everything that follows from it: the model's text, its calls and their results,
   * until it is done. The last chunk is `done`. Leaving the loop, or aborting the signal, interrupts the
   * turn. Messages of one conversation wait for each other; conversations do not.
   */
  handleStream(
    conversationId: string,
    message: string | MessageItem["content"],
    signal?: AbortSignal,
  ): AsyncIterable<ChatChunk>;
  /** What was said and done in a conversation so far. */
  history(conversationId: string): readonly Item[];
  close(): Promise<void>;
}

interface Conversation {
  readonly session: Session;
  /** Settles when the last message accepted so far has been answered. */
  idle: Promise<void>;
  waiting: number;
}

const chatServiceShape = optionsShape<ChatServiceOptions>(
  {
    engine: { methods: ["run", "lanes", "on"], words: "an engine, as createEngine makes it" },
    model: {
      either: ["function", { methods: ["ask"], words: "a model: an object with a name and a function 'ask'" }],
      words: "a model, or a function that gives one",
    },
    approver: "function",
    store: { methods: ["open", "read"], words: "a store of conversations, as openConversationFolder makes it" },
    tools: "function",
    maxOpen: { above: 0 },
    instructions: "string",
    limits: "any",
    offer: "any",
    price: "any",
    contextWindow: "any",
    request: "any",
    isRetryable: "any",
  },
  "engine",
  "model",
);

/** A chat backend: give it an engine, a model and a store of conversations. */
export function createChatService(options: ChatServiceOptions): ChatService {
  checkOptions("createChatService", options, chatServiceShape);
  const { store, maxOpen = 100 } = options;
  const open = new Map<string, Conversation>();
  /** Conversations that are being closed, whose journals cannot be opened again yet. */
  const closing = new Map<string, Promise<void>>();
  let closed = false;

  const find = (id: string): Conversation => {
    const found = open.get(id);
    // Moved to the end: the map's order is the order of last use.
    open.delete(id);
    const conversation = found ?? {
      session: openSession(options, id),
      idle: Promise.resolve(),
      waiting: 0,
    };
    open.set(id, conversation);
    return conversation;
  };

  const closeIdle = async () => {
    if (store === undefined) return; // without a store, closing would lose the conversation
    for (const [id, { session, waiting }] of open) {
      if (open.size <= maxOpen) return;
      if (waiting > 0) continue;
      open.delete(id);
      const ended = session.close().finally(() => closing.delete(id));
      closing.set(id, ended);
      await ended;
    }
  };

  async function* handleStream(
    id: string,
    message: string | MessageItem["content"],
    signal?: AbortSignal,
  ): AsyncGenerator<ChatChunk> {
    while (closing.has(id)) await closing.get(id)?.catch(() => undefined); // whoever closes it is told
    if (closed) throw new Error("The chat service is closed.");
    const conversation = find(id);
    const before = conversation.idle;
    let answered = () => {};
    conversation.idle = new Promise((resolve) => (answered = resolve));
    conversation.waiting++;
    const interrupt = () => conversation.session.interrupt();
    try {
      await before;
      signal?.throwIfAborted();
      signal?.addEventListener("abort", interrupt, { once: true });
      for await (const event of conversation.session.send(message)) {
        const chunk = toChunk(event);
        if (chunk) yield chunk;
      }
    } finally {
      signal?.removeEventListener("abort", interrupt);
      conversation.waiting--;
      answered();
      await closeIdle();
    }
  }

  return {
    handleStream,
    history: (id) => open.get(id)?.session.history ?? rebuildHistory(store?.read(id) ?? []).items,
    async close() {
      closed = true;
      const conversations = [...open.values()];
      open.clear();
      for (const { session } of conversations) session.interrupt();
      await Promise.all(conversations.map(({ idle }) => idle));
      for (const { session } of conversations) await session.close();
    },
  };
}

function openSession(options: ChatServiceOptions, id: string): Session {
  const { engine, approver, store, model, tools, offer, ...rest } = options;
  const { instructions, limits, price, contextWindow, request, isRetryable } = rest;
  const made = {
    id,
    engine,
    model: typeof model === "function" ? model(id) : model,
    ...defined({
      tools,
      offer,
      approver: approver?.(id),
      instructions,
      limits,
      price,
      contextWindow,
      request,
      isRetryable,
    }),
  };
  const kept = store?.open(id);
  try {
    return createSession({ ...made, ...kept });
  } catch (error) {
    void kept?.journal.close(); // otherwise nobody could open the conversation again
    throw error;
  }
}

function toChunk(event: SessionEvent): ChatChunk | undefined {
  switch (event.type) {
    case "item.delta":
      if (event.delta === "") return undefined;
      if (event.field === "text" || event.field === "refusal") return { type: "text", text: event.delta };
      return event.field === "arguments" ? undefined : { type: "reasoning", text: event.delta };
    case "call.asked":
      return { type: "tool_call", id: event.call.id, name: event.call.name, arguments: event.call.arguments };
    case "call.ended": {
      const { id, name, tool, ok, content } = event.call;
      return { type: "tool_result", id, name: tool ?? name, ok, content: partsToText(content) };
    }
    case "error":
      return { type: "error", message: event.message };
    case "turn.waiting":
      return { type: "waiting", calls: event.calls };
    case "turn.ended": {
      const { reason, text, calls, usage } = event;
      return { type: "done", reason, text, calls, usage };
    }
    default:
      return undefined;
  }
}
