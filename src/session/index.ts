/** Entry of `callgate/session`: the turn loop over any model and any engine. */
export type {
  HistoryCompacted,
  SessionEvent,
  SessionStarted,
  TurnEnded,
  TurnEndReason,
  UsageUpdated,
} from "./events.ts";
export { createChatService } from "./chat-service.ts";
export type { ChatChunk, ChatService, ChatServiceOptions } from "./chat-service.ts";
export { openConversationFolder } from "./conversation-store.ts";
export type { ConversationStore } from "./conversation-store.ts";
export { createChangeTracker } from "../workspace/changes.ts";
export type { ChangeTracker, ChangeTrackerOptions } from "../workspace/changes.ts";
export type { CommandChanges } from "../workspace/command-undo.ts";
export { rebuildHistory } from "./history.ts";
export type { TurnLimits } from "./limits.ts";
export type { Price } from "./price.ts";
export { eventSchema } from "./event-schema.ts";
export { createAgent } from "./agent.ts";
export type { Agent, AgentOptions, AskAgent } from "./agent.ts";
export { generate, GenerateError, stream } from "./generate.ts";
export type { Generated, GenerateOptions, GenerateStream, OutputOf } from "./generate.ts";
export { createSession } from "./session.ts";
export type { OpenTurnState, Session } from "./session.ts";
export type { SessionJournal, SessionOptions } from "./session-options.ts";
/** Types that the signatures above mention. */
export type { CompactionBy } from "./compact.ts";
export type { CommandLookedAt, DiffUpdated, TakenBack } from "./events.ts";
export type { HistoryRecord, Rebuilt } from "./history.ts";
export type { ChangedFile, TurnDiff } from "../workspace/turn-diff.ts";
export type { Spent } from "./limits.ts";
export type { GivenAnswer, OpenTurn } from "./open-turn.ts";
/** Which tools a model sees: profiles, features and ToolsConfig, by the model's family. */
export { profiles, selectProfile } from "../registry/profile.ts";
export type { Features, OfferSettings, Profile, ProfileSettings } from "../registry/profile.ts";
export type { ToolsConfig } from "../registry/tools-config.ts";
