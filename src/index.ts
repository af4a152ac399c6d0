/** The public entry: what a person who builds an agent imports. Forty names or fewer. */
export { CallError, Fault } from "./base/error.ts";
export type { Part } from "./base/content.ts";
export type { Json, JsonObject } from "./base/json.ts";
export { createRegistry } from "./registry/registry.ts";
export { loadTools } from "./registry/folder.ts";
export type { Registry } from "./registry/registry.ts";
export { createTelemetry } from "./result/telemetry.ts";
export { createEngine } from "./router/engine.ts";
export type { Engine, EngineOptions } from "./router/engine.ts";
export type { Access, Grant } from "./spec/access.ts";
export type { ExecResult } from "./spec/capability.ts";
export type { Asked, Ended } from "./spec/call.ts";
export { openapi, xml } from "./spec/class-tool.ts";
export { defineTool, fromObject } from "./spec/define.ts";
export { freeform } from "./spec/freeform.ts";
export { normalize } from "./spec/normalize.ts";
export type { ApprovalAnswer, ApprovalRequest, Approver, CallEvent } from "./spec/stages.ts";
export type { AnyTool, Situation, Tool, ToolContext, ToolOutput, ToolResult } from "./spec/tool.ts";
