/** Prompts: texts that a person chooses in their client, and that we fill in. */
import type { Part } from "../../base/content.ts";
import type { Ask } from "../../spec/question.ts";
import type { Completions } from "./completions.ts";

/** A prompt that clients can list and fill in. */
export interface ServedPrompt {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly arguments?: readonly PromptArgument[];
  /** The messages; plain text stands for one message of the user. Required arguments are present. */
  get(values: Readonly<Record<string, string>>, ctx: PromptContext): PromptText | Promise<PromptText>;
}

/** One argument of a prompt. */
export interface PromptArgument {
  readonly name: string;
  readonly description?: string;
  readonly required?: boolean;
  /** What a client may offer while the person types. */
  readonly complete?: Completions;
}

/** What a prompt can use while it is made. */
export interface PromptContext {
  /** The prompt's own questions, like a tool's. */
  readonly ask: Ask;
  readonly signal: AbortSignal;
}

/** What a prompt becomes: one text, or messages. */
export type PromptText = string | readonly PromptMessage[];

/** One message of a prompt. */
export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: string | Part;
}

/** The prompts of a server; they may change while it runs. */
export interface ServedPrompts {
  list(): readonly ServedPrompt[];
  find(name: string): ServedPrompt | undefined;
  /** Another of the same name takes its place. */
  add(...prompts: readonly ServedPrompt[]): void;
  remove(name: string): void;
  onChange(listener: () => void): () => void;
}

/** A list of prompts for `serveMcp`. */
export function createServedPrompts(prompts: readonly ServedPrompt[] = []): ServedPrompts {
  const known = new Map(prompts.map((prompt) => [prompt.name, prompt]));
  const listeners = new Set<() => void>();
  const changed = () => listeners.forEach((listener) => listener());
  return {
    list: () => [...known.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    find: (name) => known.get(name),
    add(...more) {
      for (const prompt of more) known.set(prompt.name, prompt);
      changed();
    },
    remove(name) {
      if (known.delete(name)) changed();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
