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
  /** Continues with other settings. */
  readonly config?: Config;
  /** Continues with another session. */
  readonly resume?: string;
  /** Continues with a new, empty session. */
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
  /** Whether a turn is running. */
  isBusy(): boolean;
  /** The diff of what the last turn changed on disk, in colour. */
  lastDiff(): string | undefined;
  /** Describes the session, one line for each fact. */
  describe(): string;
  /** Describes the MCP servers and their state. */
  servers(): string;
  sessions(): readonly SessionSummary[];
  listModels(): Promise<ModelList>;
  pick(words: string, choices: readonly Choice[]): Promise<string | undefined>;
  /** Sends a message to the model. */
  send(text: string): void;
  /** Runs another `callgate` command and shows what it prints. */
  runCommand(args: readonly string[]): Promise<void>;
  /** Closes the session in this process and starts again with the change. */
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
  /** Whether to show what was said before, because the screen does not show it yet. */
  readonly showHistory: boolean;
  runCommand(args: readonly string[]): Promise<string>;
}
