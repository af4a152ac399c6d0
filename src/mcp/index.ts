/** Entry of `callgate/mcp`: every server's tools as ours, and our tools for every client. */
export { createCatalogue } from "./catalogue.ts";
export { createMcpClients } from "./clients.ts";
export type { McpClients, McpClientsOptions } from "./clients.ts";
export { readServers } from "./config.ts";
export type { ReadServers, ServerConfig } from "./config.ts";
export { createConnection } from "./connection.ts";
export type { Connection } from "./connection.ts";
export { createResourceTools } from "./resources.ts";
export { serveMcp } from "./serve.ts";
export type { ServeOptions, Serving } from "./serve.ts";
export { createMcpServer } from "./server.ts";
export type { McpServerOptions } from "./server.ts";
export { createElicitingApprover } from "./served-calls.ts";
export type { ElicitingApprover } from "./served-calls.ts";
export { createServedResources } from "./served-resources.ts";
export type { ResourceFolder, ServedResources } from "./served-resources.ts";
