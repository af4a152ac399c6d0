/**
 * Asks a person for approval. The whole call can be read before the answer, and no character of it acts on
 * the terminal.
 */
import { Container, Input, SelectList, Spacer, Text, type Component, type TUI } from "@earendil-works/pi-tui";
import type { Command } from "../../spec/access.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../../spec/stages.ts";
import {
  lookAlikes,
  toQuotedBlock,
  toVisible,
  toVisibleCommand,
  toVisibleLine,
  toVisibleName,
} from "../../gate/show.ts";
import type { EffectLine } from "../../spec/effects.ts";
import type { Person } from "../chat/person.ts";
import { createTuiAsking } from "./asking.ts";
import { createEffectChooser, paintEffect } from "./choose-effects.ts";
import { createHangingText } from "./hanging-text.ts";
import { paintDiff, type Theme } from "./theme.ts";

export interface ApprovalView extends Person {
  /** Where questions appear. */
  readonly component: Container;
}

export function createApprovalView(tui: () => TUI, theme: Theme, restoreFocus: () => void): ApprovalView {
  const component = new Container();
  // Questions are asked one at a time, so parallel calls wait in line.
  let last: Promise<unknown> = Promise.resolve();

  const put = (request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalAnswer> =>
    new Promise((resolve) => {
      const finish = (answer: ApprovalAnswer) => {
        signal.removeEventListener("abort", onAbort);
        component.clear();
        restoreFocus();
        tui().requestRender();
        resolve(answer);
      };
      const onAbort = () => finish({ answer: "no", message: "The turn was interrupted." });
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) return onAbort();
      const list = new SelectList(choices(request), 8, theme.select);
      const choose = (value: string) => {
        if (value === "no-because")
          return askReason(tui(), component, theme, (message) => finish({ answer: "no", message }));
        if (value === "part" && request.effects !== undefined) return choosePart(request.effects.lines);
        // The values are those of `choices`.
        finish({ answer: value as "once" | "session" | "always" | "direct" | "no" | "stop" });
      };
      list.onSelect = ({ value }) => choose(value);
      const choosePart = (lines: readonly EffectLine[]) => {
        const chooser = createEffectChooser({
          lines,
          theme,
          changed: () => tui().requestRender(),
          done(paths) {
            if (paths !== undefined) return finish({ answer: "once", keep: paths });
            component.removeChild(chooser);
            component.addChild(guarded);
            tui().setFocus(guarded);
            tui().requestRender();
          },
        });
        component.removeChild(guarded);
        component.addChild(chooser);
        tui().setFocus(chooser);
        tui().requestRender();
      };
      list.onCancel = () => finish({ answer: "no" });
      const guarded = guard(list, { keys: answerKeys(request, choose) });
      component.addChild(new Spacer(1));
      component.addChild(createHangingText(describeRequest(request, theme)));
      component.addChild(guarded);
      tui().setFocus(guarded);
      tui().requestRender();
    });

  const inTurn = <Result>(talk: () => Promise<Result>): Promise<Result> => {
    const over = last.then(talk);
    last = over.catch(() => undefined);
    return over;
  };
  const place = { tui, component, theme, restoreFocus, guard };

  return {
    component,
    ask: (request, signal) => inTurn(() => put(request, signal)),
    converse: (talk, signal) => inTurn(() => talk(createTuiAsking(place, signal))),
  };
}

export interface GuardOptions {
  readonly now?: () => number;
  /** Letters and digits that answer, each with what it does. */
  readonly keys?: ReadonlyMap<string, () => void>;
}

/**
 * Keys that were meant for the editor must not answer a question that has just appeared. The question
 * accepts no key until it has been visible for a moment, and no yes while somebody is still typing. Escape
 * says no at any time after that moment. If a key means nothing here, a note says that it was ignored.
 */
export function guard(list: Component, { now = Date.now, keys = new Map() }: GuardOptions = {}): Component {
  const shownAt = now();
  let quietSince = shownAt;
  let note = "";
  return {
    render: (width) => [...list.render(width), ...(note === "" ? [] : [note.slice(0, width)])],
    invalidate: () => list.invalidate(),
    handleInput(data) {
      if (now() - shownAt <= guardMs) {
        if (isWriting(data)) quietSince = now();
        return;
      }
      if (data === "\u001B") return list.handleInput?.(data);
      const quiet = now() - quietSince > guardMs;
      const act = keys.get(data.toLowerCase());
      if (act !== undefined && quiet) return act();
      if (!isWriting(data)) {
        if (quiet) list.handleInput?.(data);
        return;
      }
      quietSince = now();
      const known = [...keys.keys()].join(" ");
      note = `  that key is ignored here: ${known === "" ? "" : `${known}, `}arrows and Enter answer, Esc says no`;
    },
  };
}

const guardMs = 700;

/** Whether somebody is typing or pasting text. Keys that choose are control characters or escape sequences. */
function isWriting(data: string): boolean {
  return data.startsWith("\u001B[200~") || !/^\p{Cc}/u.test(data);
}

/** The keys that answer: the first letters of the answers in the plain terminal, and the number of each row. */
function answerKeys(request: ApprovalRequest, choose: (value: string) => void): ReadonlyMap<string, () => void> {
  const letters = { y: "once", k: "part", s: "session", a: "always", d: "direct", n: "no", q: "stop" };
  const rows = choices(request);
  return new Map<string, () => void>([
    ...Object.entries(letters)
      .filter(([, value]) => rows.some((row) => row.value === value))
      .map(([letter, value]) => [letter, () => choose(value)] as const),
    ...rows.map(({ value }, index) => [String(index + 1), () => choose(value)] as const),
  ]);
}

function choices(request: ApprovalRequest) {
  if (request.effects !== undefined)
    return [
      { value: "once", label: "Keep all of it" },
      { value: "part", label: "Choose what to keep" },
      {
        value: "session",
        label: "Keep all, for this session",
        description: "changes in the same folders",
      },
      ...(request.always ? [{ value: "always", label: "Keep all, always", description: "writes the rule above" }] : []),
      ...(request.effects.direct === undefined
        ? []
        : [{ value: "direct", label: "Run it again directly", description: request.effects.direct }]),
      { value: "no", label: "Drop it", description: "nothing has changed yet" },
      { value: "no-because", label: "Drop it, and say why" },
      { value: "stop", label: "Drop it, and stop the turn" },
    ];
  return [
    { value: "once", label: "Yes, once" },
    { value: "session", label: "Yes, for this session", description: "this very call, until the session ends" },
    ...(request.always ? [{ value: "always", label: "Yes, always", description: "writes the rule above" }] : []),
    { value: "no", label: "No" },
    { value: "no-because", label: "No, and say why" },
    { value: "stop", label: "No, and stop the turn" },
  ];
}

function askReason(tui: TUI, component: Container, theme: Theme, done: (message: string) => void): void {
  component.clear();
  const input = new Input();
  input.onSubmit = done;
  input.onEscape = () => done("");
  component.addChild(new Text(theme.strong("What shall the model be told?"), 1, 1));
  component.addChild(input);
  tui.setFocus(input);
  tui.requestRender();
}

function inputText(input: unknown): string {
  return typeof input === "string" ? input : (JSON.stringify(input, null, 2) ?? "");
}

/** Where the call will run. A tool of a server runs on that server, whatever is granted here. */
function whereItRuns({ access, grant }: ApprovalRequest): string {
  const servers = [...new Set(access.servers?.map(({ server }) => `'${toVisibleLine(server)}'`))];
  if (servers.length > 0) return `runs on the MCP server ${servers.join(", ")}, with that server's powers`;
  if (grant.writes === "held")
    return grant.network === "off"
      ? "ran confined and without a network; nothing it wrote counts yet"
      : "ran confined; nothing it wrote counts yet, but what it sent over the network has been sent";
  return grant.confined ? `runs confined (${grant.policy}), ${describeNetwork(grant.network)}` : "runs unconfined";
}

function describeNetwork(network: ApprovalRequest["grant"]["network"]): string {
  if (network === "off") return "without a network";
  return network === "on" ? "with the whole network" : `with a network to ${network.map(toVisibleLine).join(", ")}`;
}

/** Everything that the person agrees to: the tool, its whole input, what it touches, and why it asks. */
export function describeRequest(request: ApprovalRequest, theme: Theme): string {
  const { access } = request;
  const ended = request.effects !== undefined;
  const asks = `${toVisibleName(request.call.tool)} ${ended ? "has run; keep what it did?" : "wants to go ahead"}`;
  const lines = [`${theme.warn("?")} ${theme.strong(asks)} ${theme.dim(`— ${toVisibleLine(request.reason)}`)}`];
  if (!ended && request.diff !== undefined) lines.push(paintDiff(toVisible(request.diff.trimEnd()), theme));
  else if (access.commands?.length)
    for (const command of access.commands) lines.push(...describeCommand(command, theme));
  else if (!ended) lines.push(toQuotedBlock(inputText(request.call.input)));
  if (access.write?.length) lines.push(theme.dim(`  changes: ${toVisibleLine(access.write.join(", "))}`));
  if (access.network?.length) lines.push(theme.dim(`  contacts: ${toVisibleLine(access.network.join(", "))}`));
  if (access.escalation)
    lines.push(
      theme.bad(`  outside the sandbox: ${toVisibleLine(access.escalation.justification ?? "no reason given")}`),
    );
  lines.push(theme.dim(`  ${whereItRuns(request)}`));
  if (request.always) {
    const { rule, file, alsoAllows } = request.always;
    lines.push(
      theme.dim(
        `  'always' writes ${toVisibleLine(rule)} to ${toVisibleLine(file)}; it also allows: ${toVisibleLine(alsoAllows)}`,
      ),
    );
  }
  // This comes last, next to the answers, because on a small screen what is further up may not be visible.
  if (request.effects !== undefined) {
    if (request.diff !== undefined) lines.push(paintDiff(toVisible(request.diff.trimEnd()), theme));
    lines.push(...request.effects.lines.map((line) => `  ${paintEffect(line, theme)}`));
  }
  return lines.join("\n");
}

function describeCommand({ shell, argv = [], cwd }: Command, theme: Theme): readonly string[] {
  const lines = [shell === undefined ? `  │ ${toVisibleCommand(argv)}` : toQuotedBlock(shell)];
  const foreign = lookAlikes(shell ?? argv.join(" ")).slice(0, 8);
  if (foreign.length > 0) lines.push(theme.bad(`  ! not ASCII, though it may look so: ${foreign.join(", ")}`));
  if (cwd !== undefined) lines.push(theme.dim(`  in: ${toVisibleLine(cwd)}`));
  return lines;
}
