import { result, type ToolResult } from "../../index.ts";

/** The form every internal tool's result has: one text. */
export function mcpText(value: unknown): ToolResult {
  return result({ content: typeof value === "string" ? value : JSON.stringify(value, null, 2) });
}
