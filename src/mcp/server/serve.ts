/**
 * Serves an engine: over stdio for a client that starts us, over streamable HTTP on loopback for
 * others, or over your own transport.
 */
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createMultiRound } from "./multi-round.ts";
import { createServedCalls } from "./served-calls.ts";
import { serveOverHttp } from "./serve-http.ts";
import type { ServeOptions, Serving } from "./serve-options.ts";
import { createMcpServer, type McpServerOptions } from "./server.ts";

const serveMcpShape = optionsShape<ServeOptions>(
  {
    engine: { methods: ["run", "lanes", "on"], words: "an engine, as createEngine makes it" },
    approver: { methods: ["ask"], words: "an approver, as createElicitingApprover makes it" },
    shows: "function",
    resources: "any",
    prompts: "table",
    port: { above: -1 },
    token: "string",
    version: "string",
    tell: "function",
    sessions: "table",
    transport: "any",
    stdio: "table",
  },
  "engine",
  "version",
  "tell",
);

/** Offers an engine's tools to MCP clients, over stdio or HTTP. */
export async function serveMcp(options: ServeOptions): Promise<Serving> {
  checkOptions("serveMcp", options, serveMcpShape);
  const { engine, approver, shows, resources, prompts, version } = options;
  const multiRound = createMultiRound();
  const served: McpServerOptions = {
    engine,
    version,
    multiRound,
    calls: createServedCalls({ multiRound, ...(approver ? { approver } : {}) }),
    ...(shows ? { shows } : {}),
    ...(resources ? { resources: typeof resources === "function" ? resources : () => resources } : {}),
    ...(prompts ? { prompts } : {}),
  };
  return options.port === undefined ? serveOne(options, served) : serveOverHttp(options, served, options.port);
}

/** One client at the other end of one transport. */
function serveOne(options: ServeOptions, served: McpServerOptions): Serving {
  const { input, output } = options.stdio ?? { input: process.stdin, output: process.stdout };
  const transport = options.transport ?? new StdioServerTransport(input, output, { maxBufferSize: 64 * 1024 * 1024 });
  const closed = new Promise<void>((resolve) => onClose(transport, resolve));
  const conversation = options.engine.conversation();
  const server = () => createMcpServer({ ...served, conversation: () => conversation });
  const handle = serveStdio(server, { transport });
  void closed.then(conversation.close);
  return {
    closed,
    async close() {
      await handle.close();
      await conversation.close();
    },
  };
}

/** The library uses the one hook that a transport has; this calls both. */
function onClose(transport: object, listener: () => void): void {
  let hook: (() => void) | undefined;
  Object.defineProperty(transport, "onclose", {
    configurable: true,
    get: () => () => {
      hook?.();
      listener();
    },
    set(next: typeof hook) {
      hook = next;
    },
  });
}
