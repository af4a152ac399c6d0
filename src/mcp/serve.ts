/** Serving an engine: stdio for a client that starts us, streamable HTTP on loopback for those that do not. */
import type { Readable, Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { AnyTool, Engine } from "../index.ts";
import type { HttpSessionsOptions } from "./http-sessions.ts";
import { createServedCalls, type ElicitingApprover } from "./served-calls.ts";
import type { ServedResources } from "./served-resources.ts";
import { serveOverHttp } from "./serve-http.ts";
import { createMcpServer, type McpServerOptions } from "./server.ts";

export interface ServeOptions {
  readonly engine: Engine;
  /** The one the engine was made with: its questions go back to the client that made the call. */
  readonly approver?: ElicitingApprover;
  readonly shows?: (tool: AnyTool) => boolean;
  readonly resources?: ServedResources;
  /** Left out: stdio. 0: any free port. */
  readonly port?: number;
  /** Left out: a new one, told through `tell`. */
  readonly token?: string;
  readonly version: string;
  /** For lines to the operator; never stdout, which belongs to the protocol. */
  readonly tell: (line: string) => void;
  readonly sessions?: Omit<HttpSessionsOptions, "open">;
  /** Left out: the process's own. */
  readonly stdio?: { readonly input: Readable; readonly output: Writable };
}

export interface Serving {
  readonly url?: string;
  readonly token?: string;
  /** Resolves when the client has gone or `close` was called. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

export async function serveMcp(options: ServeOptions): Promise<Serving> {
  const { engine, approver, shows, resources, version } = options;
  const served: McpServerOptions = {
    engine,
    version,
    calls: createServedCalls({ engine, ...(approver ? { approver } : {}) }),
    ...(shows ? { shows } : {}),
    ...(resources ? { resources } : {}),
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
