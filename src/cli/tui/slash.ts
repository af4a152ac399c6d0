/** What can be typed after a slash. One row per command: its name, what it does, and doing it. */
import { partsToText } from "../../base/content.ts";
import type { Engine } from "../../router/engine.ts";
import type { Session } from "../../session/index.ts";
import { visible } from "../visible.ts";

export interface SlashContext {
  readonly session: Session;
  readonly engine: Engine;
  readonly wire: string;
  readonly model: string;
  readonly journalPath: string | undefined;
  note(text: string): void;
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
  run(context: SlashContext, argument: string): void | Promise<void>;
}

export const slashCommands: readonly Slash[] = [
  {
    name: "help",
    description: "this list",
    run: (at) => at.note(slashCommands.map(({ name, description }) => `/${name.padEnd(10)} ${description}`).join("\n")),
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
    run: (at, wire) => (wire === "" ? at.note(at.wire) : at.restart({ wire, resume: at.session.id })),
  },
  {
    name: "tools",
    description: "what the model can call",
    run: (at) =>
      at.note(
        at.engine.registry
          .list()
          .map(({ name }) => name)
          .join(", "),
      ),
  },
  { name: "policy", description: "what may be done, and what is asked", run: showPolicy },
  { name: "compact", description: "shorten the history now", run: (at) => at.session.compact() },
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
