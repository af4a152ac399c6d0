/** Serving an engine: stdio for a client that starts us, streamable HTTP on loopback for those that do not. */
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createRounds } from "./rounds.ts";
import { createServedCalls } from "./served-calls.ts";
import { serveOverHttp } from "./serve-http.ts";
import type { ServeOptions, Serving } from "./serve-options.ts";
import { createMcpServer, type McpServerOptions } from "./server.ts";

export async function serveMcp(options: ServeOptions): Promise<Serving> {
  const { engine, approver, shows, resources, prompts, version } = options;
  const rounds = createRounds();
  const served: McpServerOptions = {
    engine,
    version,
    rounds,
    calls: createServedCalls({ engine, rounds, ...(approver ? { approver } : {}) }),
    ...(shows ? { shows } : {}),
    ...(resources ? { resources } : {}),
    ...(prompts ? { prompts } : {}),
  };
  return options.port === undefined ? serveOverStdio(options, served) : serveOverHttp(options, served, options.port);
}

function serveOverStdio(options: ServeOptions, served: McpServerOptions): Serving {
  const { input, output } = options.stdio ?? { input: process.stdin, output: process.stdout };
  const transport = new StdioServerTransport(input, output, { maxBufferSize: 64 * 1024 * 1024 });
  const handle = serveStdio(() => createMcpServer(served), { transport });
  let close = () => {};
  const closed = new Promise<void>((resolve) => {
    input.once("end", resolve);
    input.once("close", resolve);
    close = resolve;
  });
  return {
    closed,
    async close() {
      await handle.close();
      close();
    },
  };
}
