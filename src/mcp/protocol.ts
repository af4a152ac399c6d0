/**
 * The types of our public interface, written by us, so that users of the package need no protocol
 * library to read them. The library's own values fit these types.
 */

/** A tool as its server describes it. */
export interface ServerTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>> | undefined;
  readonly annotations?:
    | {
        readonly title?: string | undefined;
        readonly readOnlyHint?: boolean | undefined;
        readonly destructiveHint?: boolean | undefined;
        readonly idempotentHint?: boolean | undefined;
        readonly openWorldHint?: boolean | undefined;
      }
    | undefined;
}

/** What can be asked of a connected server beside calling its tools. */
export interface ServerClient {
  getServerCapabilities(): { readonly resources?: object | undefined } | undefined;
  listTools(): Promise<{ readonly tools: readonly ServerTool[] }>;
  listResources(page?: Page): Promise<{ readonly resources: readonly object[] }>;
  listResourceTemplates(page?: Page): Promise<{ readonly resourceTemplates: readonly object[] }>;
  readResource(at: { uri: string }): Promise<{ readonly contents: readonly { readonly uri: string }[] }>;
}

interface Page {
  cursor: string;
}

/** What a tool gave back, as it came. */
export interface ServerToolResult {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly isError?: boolean | undefined;
  readonly structuredContent?: unknown;
}

/** `fetch`, or something that behaves like it. */
export type FetchLike = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** Where a token comes from, and what happens if the server does not accept it. */
export interface TokenProvider {
  token(): Promise<string | undefined>;
  onUnauthorized?(refusal: {
    readonly response: Response;
    readonly serverUrl: URL;
    readonly fetchFn: FetchLike;
  }): Promise<void>;
}

/** A server's request for a model's words. */
export interface SampleRequest {
  readonly messages: readonly {
    readonly role: "user" | "assistant";
    readonly content: SampleBlock | readonly SampleBlock[];
  }[];
  readonly maxTokens: number;
  readonly systemPrompt?: string | undefined;
  readonly temperature?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
}

/** A piece of a message of a sampling request. */
export type SampleBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" | "audio"; readonly data: string; readonly mimeType: string }
  | { readonly type: "tool_use" | "tool_result" };

/** What the model answered to a server's sampling request. */
export interface SampleAnswer {
  readonly role: "user" | "assistant";
  readonly model: string;
  readonly content: { readonly type: "text"; readonly text: string };
  readonly stopReason?: string;
}

/**
 * A connection to one client, with messages in and out: one of the protocol library's transports, or
 * something like it.
 */
export interface McpTransport {
  start(): Promise<void>;
  send(message: object): Promise<void>;
  close(): Promise<void>;
}
