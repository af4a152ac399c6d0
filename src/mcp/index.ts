/** Entry of `callgate/mcp`: every server's tools as ours, and our tools for every client. */
export { approvalRules } from "./approval-rules.ts";
export { createTokenStore } from "./auth.ts";
export type { OpenPage, ServerAuth, TokenStore } from "./auth.ts";
export { createCatalogue } from "./catalogue.ts";
export { createMcpClients } from "./clients.ts";
export type { McpClients, McpClientsOptions } from "./clients.ts";
export { readServers } from "./config.ts";
export type { ReadServers, ServerConfig } from "./config.ts";
export { createConnection } from "./connection.ts";
export type { Connection } from "./connection.ts";
export { findKeyring } from "./keyring.ts";
export type { Keyring } from "./keyring.ts";
export type { Elicitation, ElicitationAnswer, McpHost } from "./host.ts";
export type {
  McpTransport,
  SampleAnswer,
  SampleRequest,
  ServerClient,
  ServerTool,
  ServerToolResult,
} from "./protocol.ts";
export { createResourceTools } from "./resources.ts";
export type { McpEvent, ServerMetrics } from "./server-metrics.ts";
export { adaptTools } from "./server-tools.ts";
export { serveMcp } from "./serve.ts";
export type { ServeOptions, Serving } from "./serve-options.ts";
export { createElicitingApprover } from "./eliciting-approver.ts";
export type { Attendant, ElicitingApprover } from "./eliciting-approver.ts";
export type { Complete, Completions } from "./completions.ts";
export { createServedPrompts } from "./served-prompts.ts";
export type { PromptArgument, PromptContext, PromptMessage, ServedPrompt, ServedPrompts } from "./served-prompts.ts";
export { createServedResources } from "./served-resources.ts";
export type { ResourceFolder, ResourceTemplate, ServedResource, ServedResources } from "./served-resources.ts";
