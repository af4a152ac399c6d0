/** A small engine with one tool of every kind, and MCP clients we did not write to call it with. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createEngine, defineTool, freeform, result, type AnyTool } from "../../src/index.ts";
import { createElicitingApprover, serveMcp, type ServeOptions } from "../../src/mcp/index.ts";

export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export interface Ran {
  readonly notes: string[];
  readonly aborted: string[];
}

export function tools(ran: Ran) {
  const nothing = { type: "object", properties: {} } as const;
  return [
    defineTool({
      name: "add",
      description: "Adds.",
      input: {
        type: "object",
        properties: { a: { type: "number" }, b: { type: "number" } },
        required: ["a", "b"],
      } as const,
      output: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] } as const,
      mutates: false,
      run: ({ a, b }) => result({ content: String(a + b), structured: { sum: a + b } }),
    }),
    defineTool({
      name: "picture",
      description: "A picture.",
      input: nothing,
      mutates: false,
      run: () => ({ type: "image", mediaType: "image/png", data: pixel }),
    }),
    defineTool({
      name: "steps",
      description: "Tells how far it is.",
      input: nothing,
      mutates: false,
      run(_input, ctx) {
        ctx.progress({ progress: 1, total: 2, message: "half" });
        ctx.progress({ progress: 2, total: 2 });
        return "done";
      },
    }),
    defineTool({
      name: "wait",
      description: "Waits until it is stopped.",
      input: nothing,
      mutates: false,
      run: (_input, ctx) =>
        new Promise<string>((resolve) =>
          ctx.signal.addEventListener("abort", () => {
            ran.aborted.push(ctx.callId);
            resolve("stopped");
          }),
        ),
    }),
    defineTool({
      name: "note",
      description: "Keeps a note.",
      input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const,
      mutates: true,
      run({ text }) {
        ran.notes.push(text);
        return "noted";
      },
    }),
    defineTool({
      name: "shout",
      description: "Says the text aloud.",
      input: freeform({ syntax: "lark", definition: "start: /.+/" }),
      mutates: false,
      run: (text) => text.toUpperCase(),
    }),
  ];
}

interface HereOptions extends Partial<ServeOptions> {
  readonly approval?: "unless-trusted" | "never";
  /** Besides the small ones. */
  readonly more?: readonly AnyTool[];
}

export async function serveHere({ approval = "unless-trusted", more = [], ...options }: HereOptions = {}) {
  const ran: Ran = { notes: [], aborted: [] };
  const approver = createElicitingApprover();
  const engine = createEngine({
    workspace: mkdtempSync(join(tmpdir(), "callgate-served-")),
    tools: [...tools(ran), ...more],
    approver,
    approval,
    sandbox: "full-access",
  });
  const serving = await serveMcp({ port: 0, engine, approver, version: "0", tell: () => undefined, ...options });
  return {
    ran,
    engine,
    serving,
    async close() {
      await serving.close();
      await engine.close();
    },
  };
}

export type Era = "legacy" | "modern";

export interface ClientSetup {
  readonly era: Era;
  /** Answers the server's questions; left out: the client cannot be asked. */
  readonly answer?: (message: string) => { action: "accept" | "decline" | "cancel"; content?: Record<string, string> };
  readonly onToolsChanged?: () => void;
}

export function createClient({ era, answer, onToolsChanged }: ClientSetup): Client {
  const client = new Client(
    { name: "a client of somebody else", version: "1" },
    {
      capabilities: answer ? { elicitation: { form: {} } } : {},
      ...(era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {}),
      ...(onToolsChanged ? { listChanged: { tools: { onChanged: () => onToolsChanged() } } } : {}),
    },
  );
  if (answer) client.setRequestHandler("elicitation/create", ({ params }) => answer(params.message));
  return client;
}

export async function connectHttp(url: string, token: string, setup: ClientSetup): Promise<Client> {
  const client = createClient(setup);
  const headers = { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}
