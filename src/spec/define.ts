import type { InputSchema } from "./infer.ts";
import type { Tool } from "./tool.ts";

/** Declares a tool. Returns its argument; the handler's input type is inferred from `input`. */
export function defineTool<const S extends InputSchema>(tool: Tool<S>): Tool<S> {
  return tool;
}
