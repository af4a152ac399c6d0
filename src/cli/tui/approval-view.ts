/** Asking a person, in place: the whole call can be read before the answer, and no character of it acts on the terminal. */
import { Container, Input, SelectList, Spacer, Text, type Component, type TUI } from "@earendil-works/pi-tui";
import type { ApprovalAnswer, ApprovalRequest } from "../../spec/stages.ts";
import { toQuotedBlock, toVisible, toVisibleCommand, toVisibleLine } from "../../gate/show.ts";
import type { Person } from "../chat/person.ts";
import { createTuiAsking } from "./asking.ts";
import { createHangingText } from "./hanging-text.ts";
import { paintDiff, type Theme } from "./theme.ts";

export interface ApprovalView extends Person {
  /** Where questions appear. */
  readonly component: Container;
}

export function createApprovalView(tui: () => TUI, theme: Theme, restoreFocus: () => void): ApprovalView {
  const component = new Container();
  // One question at a time: parallel calls wait in line.
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
      list.onSelect = ({ value }) => {
        if (value === "no-because")
          return askReason(tui(), component, theme, (message) => finish({ answer: "no", message }));
        finish({ answer: value as "once" | "session" | "always" | "no" | "stop" });
      };
      list.onCancel = () => finish({ answer: "no" });
      component.addChild(new Spacer(1));
      component.addChild(createHangingText(describeRequest(request, theme)));
      const guarded = guard(list);
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

/**
 * Keys that were meant for the editor must not answer a question that has just appeared: it takes
 * none until it has been in sight for a moment, nor while somebody is still writing.
 */
export function guard(list: Component, now: () => number = Date.now): Component {
  let quietSince = now();
  return {
    render: (width) => list.render(width),
    invalidate: () => list.invalidate(),
    handleInput(data) {
      if (isWriting(data)) quietSince = now();
      else if (now() - quietSince > guardMs) list.handleInput?.(data);
    },
  };
}

const guardMs = 700;

/** Characters, a paste included; keys that choose are control characters or escape sequences. */
function isWriting(data: string): boolean {
  return data.startsWith("\u001B[200~") || !/^\p{Cc}/u.test(data);
}

function choices(request: ApprovalRequest) {
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

/** A server's tool runs there, whatever is granted here. */
function whereItRuns({ access, grant }: ApprovalRequest): string {
  const servers = [...new Set(access.servers?.map(({ server }) => `'${toVisibleLine(server)}'`))];
  if (servers.length > 0) return `runs on the MCP server ${servers.join(", ")}, with that server's powers`;
  return grant.confined ? `runs confined (${grant.policy})` : "runs unconfined";
}

/** Everything the person agrees to: the tool, its whole input, what it touches, why it asks. */
export function describeRequest(request: ApprovalRequest, theme: Theme): string {
  const { access } = request;
  const lines = [
    `${theme.warn("?")} ${theme.strong(`${request.call.tool} wants to go ahead`)} ${theme.dim(`— ${toVisibleLine(request.reason)}`)}`,
  ];
  if (request.diff !== undefined) lines.push(paintDiff(toVisible(request.diff.trimEnd()), theme));
  else if (access.commands?.length)
    for (const { shell, argv } of access.commands)
      lines.push(shell === undefined ? `  │ ${toVisibleCommand(argv ?? [])}` : toQuotedBlock(shell));
  else lines.push(toQuotedBlock(inputText(request.call.input)));
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
      theme.dim(`  'always' writes ${toVisibleLine(rule)} to ${file}; it also allows: ${toVisibleLine(alsoAllows)}`),
    );
  }
  return lines.join("\n");
}
