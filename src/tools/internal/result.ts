/** The form every internal tool's result has: MCP content with one text. */
export function mcpText(value: unknown): {
  readonly content: readonly [{ readonly type: "text"; readonly text: string }];
} {
  return { content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value, null, 2) }] };
}
