import {
  arch,
  availableParallelism,
  cpus,
  freemem,
  hostname,
  loadavg,
  platform,
  release,
  totalmem,
  uptime,
} from "node:os";
import { defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";

/** The machine the engine runs on, as facts. */
export default defineTool({
  name: "internal_system_info",
  group: "system",
  description: "Facts about this machine: operating system, processors, memory, Node version, folders.",
  input: { type: "object", properties: {}, additionalProperties: false },
  parallel: true,
  mutates: false,
  run(_input, { workspace, cwd }) {
    return mcpText({
      platform: platform(),
      release: release(),
      arch: arch(),
      hostname: hostname(),
      processors: availableParallelism(),
      processor: cpus()[0]?.model ?? "unknown",
      memoryBytes: { total: totalmem(), free: freemem() },
      loadAverage: loadavg(),
      uptimeSeconds: Math.round(uptime()),
      node: process.version,
      time: new Date().toISOString(),
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      workspace,
      cwd,
    });
  },
});
