/** `/status` and `/mcp`: what a session works with, in lines. */
import type { McpClients } from "../../mcp/index.ts";
import type { Assembled } from "../assemble.ts";
import type { GuidanceFile } from "../guidance/instructions.ts";
import { firstLine } from "./timeline.ts";
import type { Modes } from "./modes.ts";
import { visible } from "./visible.ts";

export function describeSession(
  { session, engine, model, config, journalPath, guidance, mcp }: Assembled,
  modes: Modes,
  cwd: string,
): string {
  const { writableRoots, network } = engine.situation();
  const { input, output } = session.usage;
  const window = config.context_window;
  const rows: readonly (readonly [string, string])[] = [
    [
      "model",
      model.provider === "offline"
        ? "the built-in planner"
        : `${model.model.name} at ${model.provider}, over ${model.wire}`,
    ],
    ["policy", `${modes.label}; writable: ${writableRoots.join(", ") || "nothing"}; network: ${network}`],
    ["folder", cwd],
    ["guidance", guidance.files.map(describeGuidance).join(", ") || "none (no AGENTS.md here)"],
    ["servers", mcp === undefined ? "none" : [...mcp.connections.keys()].join(", ")],
    ["tools", `${session.tools().length}`],
    ["used", `${input} tokens in, ${output} out${session.costUsd > 0 ? `, $${session.costUsd.toFixed(4)}` : ""}`],
    ["window", window === undefined ? "size not known: set context_window in callgate.toml" : `${window} tokens`],
    ["session", `${session.id}, ${session.history.length} items`],
    ["journal", journalPath ?? "none is kept"],
  ];
  return rows.map(([name, value]) => `${name.padEnd(9)} ${visible(value)}`).join("\n");
}

export function describeGuidance({ path, bytes, cut }: GuidanceFile): string {
  const size = bytes < 1024 ? `${bytes} bytes` : `${(bytes / 1024).toFixed(1)} KB`;
  return `${visible(path)} (${size}${cut === 0 ? "" : `, ${cut} bytes left out: instructions_max_bytes`})`;
}

export function describeServers(mcp: McpClients | undefined): string {
  if (mcp === undefined || mcp.connections.size === 0)
    return "no MCP server is configured ('callgate mcp add' adds one)";
  const held = mcp.quarantined();
  return [...mcp.connections]
    .map(([name, connection]) => {
      const problem = connection.problem();
      const back = held.get(name)?.length ?? 0;
      const notes = [
        ...(problem === undefined ? [] : [firstLine(problem)]),
        ...(back === 0 ? [] : [`${back} tools are held back: they changed (callgate mcp tools ${name} --accept)`]),
      ];
      return `${name.padEnd(16)} ${connection.state()}${notes.length === 0 ? "" : `  ${notes.join("; ")}`}`;
    })
    .join("\n");
}
