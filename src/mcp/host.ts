/**
 * What servers may ask of us: a person's answer, the folders of the workspace, a model's answer. We
 * offer only what somebody here can give.
 */
import { pathToFileURL } from "node:url";
import { UrlElicitationRequiredError, type Client, type ClientCapabilities } from "@modelcontextprotocol/client";
import { defined, type JsonObject } from "../base/json.ts";
import { toVisible } from "../gate/show.ts";
import type { ServerConfig } from "./config.ts";
import type { SampleAnswer, SampleRequest } from "./protocol.ts";

/** What your program does when a server asks for something. */
export interface McpHost {
  /** A server's question to the person. `undefined` means that nobody can be asked, and the server is told no. */
  elicit?(question: Elicitation, signal: AbortSignal): Promise<ElicitationAnswer | undefined>;
  /** Folders a server may take as the workspace. */
  roots?(): readonly string[];
  /** A model's answer for a server that asks for one; only for servers whose settings say `sampling = true`. */
  sample?(server: string, request: SampleRequest, signal: AbortSignal): Promise<SampleAnswer>;
}

/** A server's question to the person: a form, or a page to open. */
export type Elicitation = {
  readonly server: string;
  /** The text, with everything invisible written out. */
  readonly message: string;
  /** The call it belongs to, if that is known, because it is the only one running on that server. */
  readonly callId?: string;
} & (
  | { readonly mode: "form"; readonly schema: JsonObject }
  /** Something that must not pass through us, such as a password. The person opens the address. */
  | { readonly mode: "url"; readonly url: string }
);

/** What the person said. */
export interface ElicitationAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>;
}

/** @internal */
export function hostCapabilities(host: McpHost, config: ServerConfig): ClientCapabilities {
  return {
    // Values that a form already has go back with the answer if the person did not change them.
    ...(host.elicit ? { elicitation: { form: { applyDefaults: true }, url: {} } } : {}),
    ...(host.roots ? { roots: {} } : {}),
    ...(host.sample && config.sampling ? { sampling: {} } : {}),
  };
}

/** @internal */
export function answerFor(
  client: Client,
  host: McpHost,
  config: ServerConfig,
  runningCall: () => string | undefined = () => undefined,
): void {
  const { elicit, roots, sample } = host;
  if (elicit) {
    client.setRequestHandler("elicitation/create", async ({ params }, ctx) => {
      const callId = runningCall();
      const question = { ...toElicitation(config.name, params), ...defined({ callId }) };
      const answer = await elicit(question, ctx.mcpReq.signal);
      const { action, content } = answer ?? { action: "decline" as const };
      return { action, ...(content === undefined || action !== "accept" ? {} : { content: { ...content } }) };
    });
  }
  if (roots)
    client.setRequestHandler("roots/list", () => ({
      roots: roots().map((path) => ({ uri: pathToFileURL(path).href })),
    }));
  if (sample && config.sampling)
    client.setRequestHandler("sampling/createMessage", async ({ params }, ctx) => ({
      ...(await sample(config.name, params, ctx.mcpReq.signal)),
    }));
}

/**
 * A server may refuse a call until the person has visited some pages. True if they have, so that it
 * may be called again.
 */
export async function visitPages(error: unknown, host: McpHost, server: string, signal: AbortSignal): Promise<boolean> {
  if (!UrlElicitationRequiredError.isInstance(error) || host.elicit === undefined) return false;
  for (const { message, url } of error.elicitations) {
    const answer = await host.elicit({ server, message: toVisible(message), mode: "url", url }, signal);
    if (answer?.action !== "accept") return false;
  }
  return error.elicitations.length > 0;
}

type ElicitParams =
  | { readonly mode?: "form" | undefined; readonly message: string; readonly requestedSchema: unknown }
  | { readonly mode: "url"; readonly message: string; readonly url: string };

function toElicitation(server: string, params: ElicitParams): Elicitation {
  const message = toVisible(params.message);
  if (params.mode === "url") return { server, message, mode: "url", url: params.url };
  // Checked by the protocol library against the form grammar of the specification.
  return { server, message, mode: "form", schema: params.requestedSchema as JsonObject };
}
