/** What can be typed after a slash. One row per command: its name, what it does, and doing it. */
import { partsToText } from "../../base/content.ts";
import type { Engine } from "../../router/engine.ts";
import type { Session } from "../../session/index.ts";
import { configKeys } from "../config/keys.ts";
import { visible } from "../chat/visible.ts";

export interface SlashContext {
  readonly session: Session;
  readonly engine: Engine;
  readonly wire: string;
  readonly model: string;
  readonly journalPath: string | undefined;
  note(text: string): void;
  /** A turn is running. */
  isBusy(): boolean;
  /** What the last turn changed on disk, painted. */
  lastDiff(): string | undefined;
  /** Runs another `callgate` command and shows what it prints. */
  runCommand(args: readonly string[]): Promise<void>;
  /** Ends this session's process part and starts over with other settings. */
  restart(flags: {
    readonly model?: string;
    readonly wire?: string;
    readonly resume?: string;
    readonly approval?: string;
    readonly sandbox?: string;
  }): void;
  quit(): void;
}

export interface Slash {
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string;
  /** What may follow, for completion. */
  getArgumentCompletions?(prefix: string): { value: string; label: string }[] | null;
  run(context: SlashContext, argument: string): void | Promise<void>;
}

export const slashCommands: readonly Slash[] = [
  {
    name: "help",
    description: "this list",
    run: (at) =>
      at.note(
        [...slashCommands.map(({ name, description }) => `/${name.padEnd(10)} ${description}`), "", keys].join("\n"),
      ),
  },
  {
    name: "model",
    description: "the model; with a name, go on with that one",
    argumentHint: "NAME",
    run: (at, name) =>
      name === "" ? at.note(`${at.model} over ${at.wire}`) : at.restart({ model: name, resume: at.session.id }),
  },
  {
    name: "wire",
    description: "the wire; with a name, go on over that one",
    argumentHint: "WIRE",
    getArgumentCompletions: completeFrom(["responses", "chat", "messages", "gemini", "text:"]),
    run: (at, wire) => (wire === "" ? at.note(at.wire) : at.restart({ wire, resume: at.session.id })),
  },
  {
    name: "tools",
    description: "what the model can call",
    run: (at) =>
      at.note(
        at.session
          .tools()
          .map(({ name }) => visible(name))
          .join(", ") || "nothing",
      ),
  },
  { name: "policy", description: "what may be done, and what is asked", run: showPolicy },
  {
    name: "approval",
    description: "when you are asked; with a mode, from now on",
    argumentHint: "MODE",
    getArgumentCompletions: completeFrom(configKeys.approval.oneOf),
    run: (at, mode) => changeSetting(at, "approval", mode),
  },
  {
    name: "sandbox",
    description: "what commands may touch; with a policy, from now on",
    argumentHint: "POLICY",
    getArgumentCompletions: completeFrom(configKeys.sandbox.oneOf),
    run: (at, policy) => changeSetting(at, "sandbox", policy),
  },
  {
    name: "compact",
    description: "shorten the history now",
    run: (at) => (at.isBusy() ? at.note("a turn is running: wait for it, or interrupt it") : at.session.compact()),
  },
  {
    name: "diff",
    description: "what the last turn changed",
    run: (at) => at.note(at.lastDiff() ?? "nothing has changed yet"),
  },
  {
    name: "undo",
    description: "take the last turn's file changes back",
    run: (at) => at.runCommand(["undo"]),
  },
  {
    name: "resume",
    description: "go on with another session",
    argumentHint: "ID",
    run: (at, id) => (id === "" ? at.runCommand(["sessions"]) : at.restart({ resume: id })),
  },
  { name: "cost", description: "tokens and money so far", run: showCost },
  {
    name: "history",
    description: "what the model is sent",
    run: (at) => at.note(at.session.history.map(describeItem).join("\n")),
  },
  { name: "quit", description: "end (or ctrl-d)", run: (at) => at.quit() },
];

const keys =
  "esc interrupts · shift-enter a new line · @ a file or picture · tab completes · ctrl-r unfolds reasoning · up for what you sent before";

function completeFrom(values: readonly string[]): NonNullable<Slash["getArgumentCompletions"]> {
  return (prefix) => {
    const fitting = values.filter((value) => value.startsWith(prefix));
    // A whole word needs no list: enter sends it.
    return fitting.length === 0 || fitting[0] === prefix ? null : fitting.map((value) => ({ value, label: value }));
  };
}

/** The session goes on under the new setting, with its history. */
function changeSetting(at: SlashContext, name: "approval" | "sandbox", value: string): void {
  const { oneOf } = configKeys[name];
  if (value === "") return showPolicy(at);
  if (!(oneOf as readonly string[]).includes(value)) return at.note(`/${name} takes one of ${oneOf.join(", ")}`);
  at.restart({ [name]: value, resume: at.session.id });
}

function showPolicy(at: SlashContext): void {
  const { sandbox, writableRoots, network, canEscalate } = at.engine.situation();
  at.note(
    [
      `sandbox: ${sandbox}; writable: ${writableRoots.join(", ") || "nothing"}; network: ${network}`,
      canEscalate ? "a call that needs more asks you" : "a call that needs more is refused",
      "'callgate policy check --shell LINE' explains a decision without running anything",
    ].join("\n"),
  );
}

function showCost(at: SlashContext): void {
  const { input, output, cached } = at.session.usage;
  const money =
    at.session.costUsd > 0
      ? `, ${at.session.costUsd.toFixed(4)} US dollars`
      : " (no price is set for this model: [prices] in callgate.toml)";
  at.note(`${input} tokens in (${cached ?? 0} from the cache), ${output} out${money}`);
}

function describeItem(item: Session["history"][number]): string {
  const cut = (text: string) => visible(text.replaceAll("\n", " ")).slice(0, 120);
  if (item.type === "message") return `${item.role}: ${cut(partsToText(item.content))}`;
  if (item.type === "call") return `call ${item.name} ${cut(item.arguments)}`;
  if (item.type === "result") return `result ${item.name ?? ""}: ${cut(partsToText(item.content))}`;
  return item.type;
}

/** A typed line to its command. What goes wrong is said, never thrown. */
export function createSlash(context: SlashContext): (line: string) => Promise<void> {
  return async (line) => {
    const [name, ...words] = line.slice(1).split(" ");
    const slash = slashCommands.find((entry) => entry.name === name);
    if (slash === undefined) return context.note(`there is no /${visible(name ?? "")} (/help lists them)`);
    try {
      await slash.run(context, words.join(" ").trim());
    } catch (error) {
      context.note(visible(error instanceof Error ? error.message : String(error)));
    }
  };
}
