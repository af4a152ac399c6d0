/** The public entry: what a person who builds an agent imports. Forty names or fewer. */
export { CallError } from "./base/error.ts";
export { defineTool } from "./spec/define.ts";
export { freeform } from "./spec/freeform.ts";
export type { Access, Grant } from "./spec/access.ts";
export type { AnyTool, Tool, ToolContext, ToolOutput, ToolResult } from "./spec/tool.ts";
