/**
 * What a session offers its model by default: the engine's tools, chosen by the model's profile and in
 * the profile's form.
 */
import { defined } from "../base/json.ts";
import type { ProfileForm } from "../registry/profile.ts";
import { deferTools } from "../registry/search.ts";
import type { Conversation, ConversationOptions } from "../router/conversation.ts";
import type { Model, ToolSpec } from "../spec/model.ts";
import type { SessionOptions } from "./session-options.ts";

export interface WithOffer {
  /** The options, with a model that uses the profile's form from here on. */
  readonly options: SessionOptions;
  readonly layout: ConversationOptions["layout"];
  offer(calls: Conversation): () => readonly ToolSpec[];
}

export function withOffer(options: SessionOptions): WithOffer {
  const { engine, model, tools, offer, contextWindow } = options;
  if (tools !== undefined) return { options, layout: undefined, offer: () => tools };
  const { profile } = engine.offer(model.name, offer);
  const isChosen = offer !== undefined || engine.registry.list().some((tool) => tool.offered === "by-profile");
  return {
    options: { ...options, model: inForm(model, profile.form) },
    layout: isChosen ? profile.layout : undefined,
    offer: (calls) => deferTools(calls.offer(model.name, offer).specs, defined({ window: contextWindow })),
  };
}

/** Dialects are loaded with the first request, because most models have native calls. */
function inForm(model: Model, form: ProfileForm): Model {
  if (form === "native") return model;
  let spoken: Promise<Model> | undefined;
  const load = async () => (await import("../model/text.ts")).speakForm(model, form);
  return {
    name: model.name,
    async *ask(request, signal, how) {
      yield* (await (spoken ??= load())).ask(request, signal, how);
    },
  };
}
