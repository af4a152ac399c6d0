/** Entry of `callgate/testing`: models that say what a test tells them, for your tests and ours. */
export { createOfflineModel } from "./offline-model.ts";
export { createScriptedModel } from "./scripted-model.ts";
export type { ScriptedAnswer, ScriptedCall, ScriptedModel, ScriptedStep } from "./scripted-model.ts";
export { serveModel } from "./model-server.ts";
export type { ModelServer, ModelServerOptions } from "./model-server.ts";
export { testSyncTool } from "./sync-tool.ts";
