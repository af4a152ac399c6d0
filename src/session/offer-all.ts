import type { Conversation } from "../router/conversation.ts";
import type { ToolSpec } from "../spec/model.ts";
import { toToolSpecs } from "../registry/tool-spec.ts";

/** Every tool of an engine, as a model is offered them. Made anew only when the tools change, so that equal requests have equal bytes. */
export function offerAll(engine: Pick<Conversation, "registry" | "situation">): () => readonly ToolSpec[] {
  let offered: readonly ToolSpec[] | undefined;
  engine.registry.onChange(() => (offered = undefined));
  return () => (offered ??= toToolSpecs(engine));
}
