/** What can be typed after a slash. Each command is one row: its name, its description and its function. */
import { partsToText } from "../../base/content.ts";
import { nearest } from "../../base/text.ts";
import type { ApprovalName, SandboxName } from "../../gate/modes.ts";
import type { Session } from "../../session/index.ts";
import { configKeys } from "../config/keys.ts";
import { visible } from "../chat/visible.ts";
import { wireNames } from "../../wire/codec.ts";
import type { SlashContext } from "./chat-context.ts";
import { chooseModel, resume } from "./choose.ts";
import { fillIn, type OwnPrompts } from "../guidance/prompts.ts";

export interface Slash {
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string;
  /** What may follow, for completion. */
  getArgumentCompletions?(prefix: string): { value: string; label: string }[] | null;
  run(context: SlashContext, argument: string): void | Promise<void>;
}

export const slashCommands: readonly Slash[] = [
  { name: "help", description: "this list", run: showHelp },
  { name: "status", description: "model, policy, folder, context, cost", run: (at) => at.note(at.describe()) },
  { name: "new", description: "begin an empty session", run: (at) => at.restart({ isNew: true }) },
  { name: "resume", description: "go on with another session", argumentHint: "[ID]", run: resume },
  { name: "model", description: "choose the model", argumentHint: "[NAME]", run: chooseModel },
  {
    name: "wire",
    description: "the wire; with a name, go on over that one",
    argumentHint: "[WIRE]",
    getArgumentCompletions: completeFrom([...wireNames, "text:"]),
    run: (at, wire) => (wire === "" ? at.note(at.wire) : at.restart({ config: { ...at.config, wire } })),
  },
  {
    name: "plan",
    description: "plan mode on or off: look and propose, change nothing",
    run: (at) => {
      at.modes.setPlan(!at.modes.now.isPlan);
      at.note(
        at.modes.now.isPlan
          ? "plan mode: nothing can be changed (/plan ends it)"
          : `plan mode is off: ${at.modes.label}`,
      );
    },
  },
  {
    name: "approval",
    description: "when you are asked; with a mode, from now on",
    argumentHint: "[MODE]",
    getArgumentCompletions: completeFrom(configKeys.approval.oneOf),
    run: (at, mode) => changePolicy(at, "approval", mode),
  },
  {
    name: "sandbox",
    description: "what commands may touch; with a policy, from now on",
    argumentHint: "[POLICY]",
    getArgumentCompletions: completeFrom(configKeys.sandbox.oneOf),
    run: (at, policy) => changePolicy(at, "sandbox", policy),
  },
  { name: "policy", description: "what may be done, and what is asked", run: showPolicy },
  { name: "tools", description: "what the model can call", run: showTools },
  { name: "mcp", description: "the MCP servers and how they are", run: (at) => at.note(at.servers()) },
  {
    name: "skills",
    description: "skills and commands of your own",
    run: (at) => at.note(describeOwn(at.prompts)),
  },
  {
    name: "trust",
    description: "what this project brings; '/trust yes' trusts it as it is now",
    argumentHint: "[yes]",
    run: async (at, answer) => {
      await at.runCommand(answer === "yes" ? ["trust", "--yes"] : ["trust"]);
      if (answer === "yes") at.restart({});
    },
  },
  {
    name: "init",
    description: "let the model write an AGENTS.md for this folder",
    run: (at, argument) => at.send(fillIn(initPrompt, argument)),
  },
  {
    name: "review",
    description: "let the model review what is not committed, or what you name",
    argumentHint: "[WHAT]",
    run: (at, argument) => at.send(fillIn(reviewPrompt, argument)),
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
    description: "take back what the last file changes or the last kept command did",
    run: (at) => at.runCommand(["undo"]),
  },
  {
    name: "export",
    description: "write this session to a file (.md, .html or .json)",
    argumentHint: "[FILE]",
    run: exportSession,
  },
  { name: "cost", description: "tokens and money so far", run: showCost },
  {
    name: "history",
    description: "what the model is sent",
    run: (at) => at.note(at.session.history.map(describeItem).join("\n") || "nothing yet"),
  },
  { name: "quit", description: "end (or ctrl-d)", run: (at) => at.quit() },
];

const keys = [
  "esc interrupts · shift-enter a new line · @ a file or picture · ! a command of your own · tab completes",
  "shift-tab changes the mode · ctrl-r unfolds reasoning · up edits a queued message, or what you sent before",
].join("\n");

const initPrompt = `Look at this folder: what it is, how it is built, tested and run, how its code is laid out and written. Then write AGENTS.md in its root, for agents that will work here: at most 60 lines, only what they could not guess, with the exact commands. If there is an AGENTS.md or CLAUDE.md already, improve it instead of starting over.`;

const reviewPrompt = `Review the changes of this repository that are not committed yet ('git status', 'git diff', 'git diff --staged', and files that are not tracked), or what is named below. Change nothing. Look for mistakes first: wrong results, lost data, holes in security, races, what breaks callers; then missing tests; then what is hard to read. Give each finding a file and line, what happens, and how to mend it, most serious first. If there is nothing, say so.`;

/**
 * The commands of one session: the built-in ones, and those of the user and the project, which cannot
 * replace built-in ones.
 */
export function sessionSlashes({ commands, skills }: OwnPrompts): readonly Slash[] {
  const taken = new Set(slashCommands.map(({ name }) => name));
  const own = commands.map(({ name, description, argumentHint, body }): Slash => ({
    name,
    description,
    ...(argumentHint === undefined ? {} : { argumentHint }),
    run: (at, argument) => at.send(fillIn(body, argument)),
  }));
  const skilled = skills.map(({ name, description, path, body }): Slash => ({
    name,
    description,
    run: (at, argument) => at.send(fillIn(`Follow the skill '${name}' (${path}):\n\n${body}`, argument)),
  }));
  const added = [...own, ...skilled].filter(({ name }) => !taken.has(name) && taken.add(name));
  return [...slashCommands, ...added];
}

function completeFrom(values: readonly string[]): NonNullable<Slash["getArgumentCompletions"]> {
  return (prefix) => {
    const fitting = values.filter((value) => value.startsWith(prefix));
    // No list is shown for a complete word, so that Enter sends it.
    return fitting.length === 0 || fitting[0] === prefix ? null : fitting.map((value) => ({ value, label: value }));
  };
}

function showHelp(at: SlashContext): void {
  const rows = sessionSlashes(at.prompts).map(({ name, description }) => `/${name.padEnd(9)} ${visible(description)}`);
  at.note([...rows, "", keys].join("\n"));
}

function showTools(at: SlashContext): void {
  const names = at.session.tools().map(({ name }) => visible(name));
  at.note(names.join(", ") || "nothing");
}

/** The change applies from the next call on. Running calls continue as they were allowed. */
function changePolicy(at: SlashContext, name: "approval" | "sandbox", value: string): void {
  const { oneOf } = configKeys[name];
  if (value === "") return showPolicy(at);
  if (!(oneOf as readonly string[]).includes(value)) return at.note(`/${name} takes one of ${oneOf.join(", ")}`);
  // The value was found in the list of names above.
  at.modes.set(name === "approval" ? { approval: value as ApprovalName } : { sandbox: value as SandboxName });
  at.note(`from now on: ${at.modes.label}`);
}

function showPolicy(at: SlashContext): void {
  const { sandbox, writableRoots, network, canEscalate } = at.engine.situation();
  at.note(
    [
      `sandbox: ${sandbox}; writable: ${writableRoots.join(", ") || "nothing"}; network: ${network}`,
      `approval: ${at.modes.now.approval}; ${canEscalate ? "a call that needs more asks you" : "a call that needs more is refused"}`,
      "'callgate policy check --shell LINE' explains a decision without running anything",
    ].join("\n"),
  );
}

async function exportSession(at: SlashContext, file: string): Promise<void> {
  const name = file === "" ? `callgate-${at.session.id}.md` : file;
  const format = name.endsWith(".html") ? "html" : name.endsWith(".json") ? "json" : "markdown";
  await at.runCommand(["export", at.session.id, "--format", format, "--output", name]);
}

function showCost(at: SlashContext): void {
  const { input, output, cached } = at.session.usage;
  const money =
    at.session.costUsd > 0
      ? `, ${at.session.costUsd.toFixed(4)} US dollars`
      : " (no price is set for this model: [prices] in callgate.toml)";
  at.note(`${input} tokens in (${cached ?? 0} from the cache), ${output} out${money}`);
}

function describeOwn({ skills, commands }: OwnPrompts): string {
  const rows = [
    ...skills.map(({ name, description }) => `/${name.padEnd(12)} skill: ${visible(description)}`),
    ...commands.map(({ name, description }) => `/${name.padEnd(12)} ${visible(description)}`),
  ];
  return (
    rows.join("\n") || "none yet: Markdown files in .callgate/commands and .callgate/skills, or beside your settings"
  );
}

function describeItem(item: Session["history"][number]): string {
  const cut = (text: string) => visible(text.replaceAll("\n", " ")).slice(0, 120);
  if (item.type === "message") return `${item.role}: ${cut(partsToText(item.content))}`;
  if (item.type === "call") return `call ${item.name} ${cut(item.arguments)}`;
  if (item.type === "result") return `result ${item.name ?? ""}: ${cut(partsToText(item.content))}`;
  return item.type;
}

/** Runs the command of a typed line. Errors are shown and never thrown. */
export function createSlash(context: SlashContext): (line: string) => Promise<void> {
  const known = sessionSlashes(context.prompts);
  return async (line) => {
    const [name = "", ...words] = line.slice(1).split(" ");
    const slash = known.find((entry) => entry.name === name);
    if (slash === undefined) {
      const [guess] = nearest(
        name,
        known.map((entry) => entry.name),
        1,
      );
      return context.note(
        `there is no /${visible(name)}${guess === undefined ? "" : `; did you mean /${guess}?`} (/help lists them)`,
      );
    }
    try {
      await slash.run(context, words.join(" ").trim());
    } catch (error) {
      context.note(visible(error instanceof Error ? error.message : String(error)));
    }
  };
}
