/** What the settings of servers say about asking, as rules of the gate. */
import type { Rule } from "../../gate/rules.ts";
import type { ServerConfig, ToolApproval } from "../config.ts";

const decisions = { prompt: "ask", approve: "allow", deny: "deny" } as const;

/** The strictest rule wins, so the server's own mode leaves out tools that have their own. */
export function approvalRules(servers: readonly ServerConfig[]): readonly Rule[] {
  return servers.flatMap(({ name, approval: { byDefault, tools } }) => {
    const own = Object.keys(tools).map((tool) => `${name}/${tool}`);
    return [
      ...toRule(name, byDefault, own),
      ...Object.entries(tools).flatMap(([tool, mode]) => toRule(`${name}/${tool}`, mode, [])),
    ];
  });
}

function toRule(mcp: string, mode: ToolApproval | undefined, except: readonly string[]): readonly Rule[] {
  if (mode === undefined || mode === "auto") return [];
  return [
    {
      mcp,
      ...(except.length === 0 ? {} : { except }),
      decision: decisions[mode],
      reason: `the settings of the MCP server say '${mode}' for ${mcp}`,
      source: "mcpServers",
    },
  ];
}
