/** Entry of `callgate/ai-sdk`: an engine's tools, a model and a confined sandbox for Vercel's AI SDK, 6 and 7. */
export { toAiSdkTools } from "./tools.ts";
export type { AiSdkOutput, AiSdkTools } from "./tools.ts";
export { toAiSdkModel } from "./model.ts";
export type { AiSdkModel } from "./prompt.ts";
export { toAiSdkSandbox } from "./sandbox.ts";
export type { AiSdkSandbox, AiSdkSandboxProcess } from "./sandbox.ts";
export type { CallStore, KeptCall } from "../../store/call-store.ts";
export type { AdapterOptions, ToolHost } from "../calls.ts";
