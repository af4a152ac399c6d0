/** The public entry: what a person who builds an agent imports. Forty values or fewer, and every type they speak of. */
export { CallError, Fault } from "./base/error.ts";
export type { Part } from "./base/content.ts";
export type { Json, JsonObject } from "./base/json.ts";
export { createRegistry } from "./registry/registry.ts";
export { loadTools } from "./registry/folder.ts";
export type { Registry } from "./registry/registry.ts";
export { createTelemetry } from "./result/telemetry.ts";
export { createEngine } from "./router/engine.ts";
export type { Engine, EngineOptions } from "./router/engine.ts";
export type { Conversation, ConversationOptions, WireTools } from "./router/conversation.ts";
export type { CallResult, RunOptions } from "./router/runner.ts";
export type { Access, Grant } from "./spec/access.ts";
export type { ExecResult } from "./spec/capability.ts";
export type { Asked, Ended } from "./spec/call.ts";
export { addToolSearch, deferTools } from "./registry/search.ts";
export type { DeferOptions } from "./registry/search.ts";
export { toToolSpecs } from "./registry/tool-spec.ts";
export type { SpecOptions, ToolSource } from "./registry/tool-spec.ts";
export { toolSchemas } from "./registry/class-tool.ts";
export { openapi, xml } from "./registry/decorators.ts";
export { defineTool, fromObject } from "./registry/define.ts";
export { freeform } from "./spec/freeform.ts";
export { normalizeSchema } from "./schema/normalize.ts";
export { checkSchema } from "./schema/normalize/check-schema.ts";
export type { ApprovalAnswer, ApprovalRequest, Approver, CallEvent, Decided } from "./spec/stages.ts";
export { result } from "./spec/result.ts";
export type { ToolResult } from "./spec/result.ts";
export type { AnyTool, Situation, Tool, ToolContext, ToolOutput } from "./spec/tool.ts";
/** What the signatures above speak of. */
export type { AudioPart, FilePart, ImagePart, ResourcePart, TextPart } from "./base/content.ts";
export type { CallErrorCode, CallErrorOptions } from "./base/error.ts";
export type { ApprovalName, PolicyNames, SandboxName } from "./gate/modes.ts";
export type { RegisterOptions, ToolClass } from "./registry/class-tool.ts";
export type { OpenapiOptions, XmlOptions } from "./registry/decorators.ts";
export type { ToolObject } from "./registry/define.ts";
export type { LoadOptions, LoadedTools, Refusal as RefusedFile } from "./registry/folder.ts";
export type { OpenapiSchema } from "./registry/tool-spec.ts";
export type { ExecLayout, Kept, Spill } from "./result/cut.ts";
export type { Metrics, ToolMetrics } from "./result/metrics.ts";
export type { ShapeOptions } from "./result/shape.ts";
export type { ModelExchange, Telemetry, TelemetryOptions } from "./result/telemetry.ts";
export type { Budget } from "./result/truncate.ts";
export type { HostOptions } from "./router/host.ts";
export type { Lanes, LanesOptions, MadeBy } from "./router/runner.ts";
export type { EnvironmentPolicy } from "./runtime/environment.ts";
export type { FileChange } from "./runtime/files/scope.ts";
export type { NormalizeSchemaOptions, NormalizedSchema } from "./schema/normalize.ts";
export type { SchemaTarget } from "./schema/normalize/rules.ts";
export type { Change } from "./schema/normalize/trail.ts";
export type { Command, DeniedProgram, Escalation, OptionTest, ShellDialect, WordTest } from "./spec/access.ts";
export type { Bound, Ran } from "./spec/call.ts";
export type {
  CapturedOutput,
  Exec,
  ExecChunk,
  ExecRequest,
  Fetch,
  FileEntry,
  FileName,
  FileSlice,
  FileVersion,
  Files,
  LimitName,
  StartedProgram,
  StartedPrograms,
  TerminalInfo,
  TerminalInput,
  TerminalRequest,
  TerminalSize,
  TerminalView,
  Terminals,
  TextFile,
  WriteOptions,
} from "./spec/capability.ts";
export type { Freeform } from "./spec/freeform.ts";
export type { Infer, InputSchema, JsonSchemaLiteral, SchemaPair, StandardInput } from "./spec/infer.ts";
export type {
  AnyAnswer,
  AnswerTo,
  Answerer,
  Answers,
  Ask,
  FoldersAnswer,
  FoldersQuestion,
  FormAnswer,
  FormQuestion,
  ModelAnswer,
  ModelQuestion,
  PageAnswer,
  PageQuestion,
  Question,
  QuestionKind,
  QuestionRequest,
  Questions,
} from "./spec/question.ts";
export type { ExecOutcome, McpBlock, ResultFields } from "./spec/result.ts";
export type { Binder, ChangedText } from "./spec/stages.ts";
export type { StandardIssue, StandardResult, StandardValidator, StandardWritten } from "./spec/standard.ts";
export type {
  AccessContext,
  CallOutcome,
  Logger,
  McpContent,
  ToolExample,
  ToolProgress,
  XmlMapping,
  XmlParameter,
} from "./spec/tool.ts";
export type { FillDefaults } from "./check/check.ts";
export type { ToolSchema } from "./registry/class-tool.ts";
export type { XmlMappingRow } from "./registry/decorators.ts";
export type { ProfileForm } from "./registry/profile.ts";
export type { Offered, ToolsForOptions } from "./router/offered.ts";
export type { ToolCache, ToolForm } from "./spec/tool.ts";
export type { FollowOptions, FollowedSession } from "./result/telemetry.ts";
