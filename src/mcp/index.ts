/** Entry of `callgate/mcp`: every server's tools as ours, and our tools for every client. */
export { createTokenStore } from "./auth/auth.ts";
export type { OpenPage, ServerAuth, TokenStore } from "./auth/auth.ts";
export { createMcpClients } from "./client/clients.ts";
export type { McpClients, McpClientsOptions } from "./client/clients.ts";
export { readServers } from "./config.ts";
export type { ReadServers, ServerConfig } from "./config.ts";
export type { Connection } from "./client/connection.ts";
export type { Keyring } from "./auth/keyring.ts";
export type { Elicitation, ElicitationAnswer, McpHost } from "./host.ts";
export type {
  McpTransport,
  SampleAnswer,
  SampleRequest,
  ServerClient,
  ServerTool,
  ServerToolResult,
} from "./protocol.ts";
export { createResourceTools } from "./client/resources.ts";
export type { McpEvent, ServerMetrics } from "./client/metrics.ts";
export { serveMcp } from "./server/serve.ts";
export type { ServeOptions, Serving } from "./server/serve-options.ts";
export { createElicitingApprover } from "./server/eliciting-approver.ts";
export type { ElicitingClient, ElicitingApprover } from "./server/eliciting-approver.ts";
export type { Complete, Completions } from "./server/completions.ts";
export { createServedPrompts } from "./server/served-prompts.ts";
export type {
  PromptArgument,
  PromptContext,
  PromptMessage,
  ServedPrompt,
  ServedPrompts,
} from "./server/served-prompts.ts";
export { createServedResources } from "./server/served-resources.ts";
export type { ResourceFolder, ResourceTemplate, ServedResource, ServedResources } from "./server/served-resources.ts";
/** Types that the signatures above mention. */
export type { Challenge, TokenStoreOptions } from "./auth/auth.ts";
export type { IdentityConfig, OAuthConfig, SecretSource } from "./auth/config.ts";
export type { CallOptions, ConnectionOptions } from "./client/connection.ts";
export type { LiveClientOptions, ServerState } from "./client/live-client.ts";
export type { OpenOptions } from "./client/open-client.ts";
export type { OnRefused } from "./client/sound-messages.ts";
export type { StartContext } from "./client/start-server.ts";
export type { HttpConfig, ServerApproval, StdioConfig, ToolApproval } from "./config.ts";
export type { FetchLike, SampleBlock, TokenProvider } from "./protocol.ts";
export type { ResourcesFor, SessionLimits } from "./server/serve-options.ts";
export type { PromptText } from "./server/served-prompts.ts";
export type { ServedContent, ServedResourcesOptions } from "./server/served-resources.ts";
export type { ServerProblem } from "./config.ts";
export type { ServerStatus } from "./client/clients.ts";
