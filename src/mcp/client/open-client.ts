/** From a server's settings to a connected client, over whichever transport the server has. */
import {
  Client,
  type JsonSchemaValidator,
  type jsonSchemaValidator,
  type Transport,
} from "@modelcontextprotocol/client";
import type { ServerAuth } from "../auth/auth.ts";
import type { HttpConfig, ServerConfig } from "../config.ts";
import { answerFor, hostCapabilities, type McpHost } from "../host.ts";
import { createHttpTransport, createSseTransport, isNotStreamable } from "./http-transport.ts";
import type { ServerTool } from "../protocol.ts";
import { createKeptSecrets, secretsInEnvironment, type KeptSecrets } from "./keep-secrets.ts";
import { keepSound, type OnRefused } from "./sound-messages.ts";
import { startServer, type StartContext } from "./start-server.ts";
import { createStdioTransport, type StdioTransport } from "./stdio-transport.ts";

/** What is needed to open a client: the server, and who answers its questions. */
export interface OpenOptions extends StartContext {
  /** The server, as the settings describe it. */
  readonly config: ServerConfig;
  /** Called with the whole list when the server has changed its tools. */
  readonly onToolsChanged: (tools: readonly ServerTool[]) => void;
  /** Answers what the server asks: elicitation, roots, sampling. */
  readonly host?: McpHost;
  /** The one call that is running on it. Undefined if there is none, or more than one. */
  readonly runningCall?: () => string | undefined;
  /** The login, if the server wants one. */
  readonly authProvider?: ServerAuth;
  /** Our program's version, which the server is told. */
  readonly version: string;
  /** Aborted when nobody wants the server any more, even while it is still starting. */
  readonly signal?: AbortSignal;
  /** Told which tools of the server cannot be used, and why. */
  readonly onRefused?: OnRefused;
  /** What the connection broke on, told before it is closed. */
  readonly onFault?: (error: Error) => void;
}

interface Keeping extends OpenOptions {
  readonly secrets: KeptSecrets;
}

/** @internal */
export async function openClient(options: OpenOptions, onClose: () => void): Promise<Client> {
  const { transport } = options.config;
  if (transport.kind === "stdio") {
    const server = { ...options.config, transport };
    const secrets = createKeptSecrets(secretsInEnvironment(transport, options.env));
    const stdio = createStdioTransport(() => startServer(server, options));
    return connect({ ...options, secrets }, stdio, onClose).catch((error: unknown) => {
      throw secrets.error(withLastWords(error, stdio));
    });
  }
  const keeping = { ...options, secrets: createKeptSecrets() };
  try {
    return await connect(keeping, createHttpTransport(transport, keeping), onClose);
  } catch (error) {
    if (!isNotStreamable(error)) throw keeping.secrets.error(error);
    return openOlder(keeping, transport, onClose, keeping.secrets.error(error));
  }
}

/** If the older form does not work either, the user is told the first refusal. */
async function openOlder(
  options: Keeping,
  transport: HttpConfig,
  onClose: () => void,
  first: unknown,
): Promise<Client> {
  try {
    return await connect(options, createSseTransport(transport, options), onClose);
  } catch {
    throw first;
  }
}

async function connect(options: Keeping, transport: Transport, onClose: () => void): Promise<Client> {
  const { config, host = {}, version, secrets } = options;
  const client = new Client(
    { name: "callgate", version },
    {
      capabilities: hostCapabilities(host, config),
      jsonSchemaValidator: leftToTheLine,
      versionNegotiation: { mode: modeOf(config) },
      listChanged: {
        tools: { onChanged: (error, tools) => (error || !tools ? undefined : options.onToolsChanged(tools)) },
      },
    },
  );
  answerFor(client, host, config, options.runningCall);
  keepSound(transport, options.onRefused ?? (() => undefined), secrets);
  const stop = () => void transport.close().catch(() => undefined);
  options.signal?.addEventListener("abort", stop, { once: true });
  try {
    options.signal?.throwIfAborted();
    await client.connect(transport, { timeout: config.startTimeoutMs });
  } catch (error) {
    await transport.close().catch(() => undefined);
    throw error;
  } finally {
    options.signal?.removeEventListener("abort", stop);
  }
  // oxlint-disable prefer-add-event-listener -- the protocol library has only these hooks
  client.onclose = onClose;
  client.onerror = (error) => options.onFault?.(secrets.error(error));
  // oxlint-enable prefer-add-event-listener
  return client;
}

/** Results are checked on our line like any others. The library would compile a foreign schema to code for that. */
const leftToTheLine: jsonSchemaValidator = {
  getValidator<Value>(): JsonSchemaValidator<Value> {
    return (input) => ({ valid: true, data: input as Value, errorMessage: undefined });
  },
};

/** Asking a stdio server for its protocol version first would start it twice. Over HTTP it is one more request. */
function modeOf({ protocol, transport }: ServerConfig) {
  if (protocol === "auto" || protocol === "legacy") return protocol;
  if (protocol !== undefined) return { pin: protocol };
  return transport.kind === "http" ? "auto" : "legacy";
}

function withLastWords(error: unknown, transport: StdioTransport): Error {
  const tail = transport.stderrTail();
  const message = error instanceof Error ? error.message : String(error);
  return new Error(tail === "" ? message : `${message}; it said: ${tail.split("\n").slice(-5).join(" / ")}`, {
    cause: error,
  });
}
