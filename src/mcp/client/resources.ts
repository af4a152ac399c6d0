/** Three tools over the resources of all servers: list, list templates, read. */
import { CallError, defineTool, type Access, type AnyTool } from "../../index.ts";
import type { McpClients } from "./clients.ts";
import type { Connection } from "./connection.ts";
import type { ServerClient } from "../protocol.ts";

/** Which servers are asked: the one that is named, or all of them. */
function uses(clients: McpClients, name: string, server?: string): Access {
  const servers = server === undefined ? [...clients.connections.keys()] : [server];
  return { servers: servers.map((one) => ({ server: one, name })) };
}

const listInput = {
  type: "object",
  properties: {
    server: { type: "string", description: "Only this server's; left out: all servers'." },
    cursor: { type: "string", description: "Where the last answer stopped (needs server)." },
  },
  additionalProperties: false,
} as const;

/** Tools by which a model lists and reads the servers' resources. */
export function createResourceTools(clients: McpClients): readonly AnyTool[] {
  const each = async <Result>(server: string | undefined, ask: (client: ServerClient) => Promise<Result>) => {
    const askOne = (name: string) => find(clients, name).ask(ask).catch(toProblem);
    if (server !== undefined) return [{ server, ...(await askOne(server)) }];
    return Promise.all(
      [...clients.connections.keys()].map(async (name) => ({
        server: name,
        ...(await Promise.race([askOne(name), noAnswer()])),
      })),
    );
  };
  return [
    defineTool({
      name: "list_mcp_resources",
      description: "List the resources that MCP servers offer.",
      input: listInput,
      access: ({ server }) => uses(clients, "resources/list", server),
      parallel: true,
      mutates: false,
      run: async ({ server, cursor }) => ({
        servers: toJson(await each(server, (client) => listResources(client, cursor))),
      }),
    }),
    defineTool({
      name: "list_mcp_resource_templates",
      description: "List the resource templates that MCP servers offer.",
      input: listInput,
      access: ({ server }) => uses(clients, "resources/templates/list", server),
      parallel: true,
      mutates: false,
      run: async ({ server, cursor }) => ({
        servers: toJson(await each(server, (client) => listTemplates(client, cursor))),
      }),
    }),
    defineTool({
      name: "read_mcp_resource",
      description: "Read one resource of an MCP server.",
      input: {
        type: "object",
        properties: { server: { type: "string" }, uri: { type: "string" } },
        required: ["server", "uri"],
        additionalProperties: false,
      },
      access: ({ server }) => uses(clients, "resources/read", server),
      parallel: true,
      mutates: false,
      async run({ server, uri }) {
        const { contents } = await find(clients, server).ask((client) => client.readResource({ uri }));
        return { content: contents.map((resource) => ({ type: "resource" as const, resource })) };
      },
    }),
  ];
}

/**
 * A server without resources is not asked, because the library would report that on stdout, which does
 * not belong to it.
 */
async function listResources(client: ServerClient, cursor: string | undefined) {
  if (client.getServerCapabilities()?.resources === undefined) return { resources: [] };
  return client.listResources(cursor === undefined ? undefined : { cursor });
}

async function listTemplates(client: ServerClient, cursor: string | undefined) {
  if (client.getServerCapabilities()?.resources === undefined) return { resourceTemplates: [] };
  return client.listResourceTemplates(cursor === undefined ? undefined : { cursor });
}

function find(clients: McpClients, server: string): Connection {
  const connection = clients.connections.get(server);
  if (connection === undefined) {
    throw new CallError("mcp", `There is no MCP server '${server}'.`, {
      hint: `There are: ${[...clients.connections.keys()].join(", ") || "none"}.`,
    });
  }
  return connection;
}

/** One server that is down, or has no resources, does not affect the list of the others. */
function toProblem(error: unknown): { readonly error: string } {
  return { error: error instanceof Error ? error.message : String(error) };
}

/** How long one server may hold up the list of all. */
const patienceMs = 5_000;

function noAnswer(): Promise<{ readonly error: string }> {
  const error = `no answer within ${patienceMs / 1000} s; name the server to wait for it`;
  return new Promise((resolve) => void setTimeout(() => resolve({ error }), patienceMs).unref());
}

function toJson(value: unknown) {
  return JSON.parse(JSON.stringify(value)) as never;
}
