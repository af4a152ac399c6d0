/** What an interactive session works with, for whichever interface shows it. */
import type { ModelList } from "../../model/list-models.ts";
import type { Engine } from "../../router/engine.ts";
import type { Session } from "../../session/index.ts";
import type { SessionSummary } from "../../store/index.ts";
import type { Modes } from "../chat/modes.ts";
import type { Choice } from "../chat/person.ts";
import type { PromptHistory } from "../chat/prompt-history.ts";
import type { Config } from "../config/config.ts";
import type { OwnPrompts } from "../guidance/prompts.ts";

/** What the session continues with when it is set up again. */
export interface Restart {
  /** Other settings. */
  readonly config?: Config;
  /** Another session. */
  readonly resume?: string;
  /** An empty one. */
  readonly isNew?: boolean;
}

export interface SlashContext {
  readonly session: Session;
  readonly engine: Engine;
  readonly config: Config;
  readonly wire: string;
  readonly model: string;
  readonly modes: Modes;
  readonly prompts: OwnPrompts;
  note(text: string): void;
  /** A turn is running. */
  isBusy(): boolean;
  /** What the last turn changed on disk, painted. */
  lastDiff(): string | undefined;
  /** Everything about the session, a line each. */
  describe(): string;
  /** The MCP servers and how they are. */
  servers(): string;
  sessions(): readonly SessionSummary[];
  listModels(): Promise<ModelList>;
  pick(words: string, choices: readonly Choice[]): Promise<string | undefined>;
  /** Sends a message to the model. */
  send(text: string): void;
  /** Runs another `callgate` command and shows what it prints. */
  runCommand(args: readonly string[]): Promise<void>;
  /** Ends this session's process part and starts over. */
  restart(change: Restart): void;
  quit(): void;
}

/** What a session works with, for whichever interface shows it. */
export interface ChatContext extends Omit<
  SlashContext,
  "note" | "isBusy" | "lastDiff" | "pick" | "send" | "runCommand" | "restart" | "quit"
> {
  readonly cwd: string;
  readonly greeting: string;
  readonly typed: PromptHistory;
  /** Shows what was said before, where the screen does not have it yet. */
  readonly showHistory: boolean;
  runCommand(args: readonly string[]): Promise<string>;
}
