/** Entry of `callgate/model`: models over HTTP, by provider or by address, and models that only write text. */
export { createHttpModel } from "./http.ts";
export type { HttpModel } from "./http.ts";
export type { HttpModelOptions } from "./http-options.ts";
export { createProviderModel } from "./provider-model.ts";
export type { ProviderModelOptions } from "./provider-model.ts";
export { providers } from "./providers.ts";
export type { Provider } from "./providers.ts";
export { createCompletionsCodec, type CompletionOptions } from "./completions.ts";
export { createTextModel, type TextModelOptions } from "./text.ts";
export type { TimeLimits, Transport } from "./transport.ts";
/** What a model is asked and answers: everything that is needed to write a model, or an adapter for one. */
export type {
  Answer,
  AnswerEnd,
  CallItem,
  CallKind,
  FunctionSpec,
  Item,
  MessageItem,
  Model,
  ModelError,
  ModelEvent,
  ModelRequest,
  ReasoningItem,
  ResultItem,
  ToolChoice,
  ToolSpec,
  Usage,
} from "../spec/model.ts";
/** Types that the signatures above mention. */
export type { HttpAnswer } from "./transport.ts";
export type {
  AskOptions,
  CompactionItem,
  CustomSpec,
  DeltaField,
  Extra,
  Finish,
  ModelNote,
  NamespaceSpec,
  NativeSpec,
  OtherItem,
  Outcome,
  ServerCallItem,
} from "../spec/model.ts";
