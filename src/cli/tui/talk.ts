/**
 * Connects the person and the session: what is typed is sent or queued, and what the session does is shown
 * on the screen.
 */
import { Text, type Container, type Editor, type TuiMainScreen } from "@earendil-works/pi-tui";
import { partsToText, type Part } from "../../base/content.ts";
import type { Session, SessionEvent } from "../../session/index.ts";
import { runOwnCommand, tellOwnCommand, withBeside } from "../chat/own-command.ts";
import { visible } from "../chat/visible.ts";
import type { ApprovalView } from "./approval-view.ts";
import type { ChatContext } from "./chat-context.ts";
import { readMessage } from "./attach.ts";
import { createStatusLine } from "./status-line.ts";
import { paintDiff, type Theme } from "./theme.ts";
import type { TranscriptView } from "./transcript-view.ts";

export interface Screen {
  readonly theme: Theme;
  readonly tui: TuiMainScreen;
  readonly editor: Editor;
  readonly transcript: TranscriptView;
  readonly approvals: ApprovalView;
  /** Messages that wait for the next request. */
  readonly queue: Container;
  readonly status: Container;
}

export interface Talk {
  /** Whether a turn or a command that the person typed is running. */
  readonly isBusy: () => boolean;
  readonly lastDiff: () => string | undefined;
  send(line: string): void;
  /** Takes the newest queued message back into the editor. False if there is none. */
  editQueued(): boolean;
  /** Ends the turn. Queued messages come back into the editor. */
  interrupt(): void;
  /** Runs a command in the person's own shell. */
  runOwn(line: string): Promise<void>;
  /** Resolves when everything has ended. */
  close(): Promise<void>;
}

/** A message that waits, as it was typed and as the session has it. */
interface Queued {
  readonly line: string;
  readonly content: string | readonly Part[];
}

const ownTailLines = 12;

export function createTalk(screen: Screen, context: ChatContext, say: (text: string) => void): Talk {
  const { theme, tui, transcript } = screen;
  const { session, modes } = context;
  const waiting = createWaiting(screen, session);
  /** What the model is told with the next message: changes of the mode, and commands that the person ran. */
  const beside: string[] = [];
  let playing: Promise<void> | undefined;
  let own: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  let diff: string | undefined;
  let { context_window: contextWindow } = context.config;
  let hasAsked = contextWindow !== undefined;
  /**
   * If the settings do not give the size of the context window, the model's server may know it. It is asked
   * once, after the first answer.
   */
  const learnWindow = async () => {
    if (hasAsked) return;
    hasAsked = true;
    const list = await context.listModels().catch(() => undefined);
    contextWindow = list?.ok === true ? list.windows.get(context.model) : undefined;
    tui.requestRender();
  };
  const status = createStatusLine({
    ...context,
    mode: () => modes.label,
    theme,
    redraw: () => tui.requestRender(),
    nameOf: transcript.nameOf,
    costUsd: () => session.costUsd,
    contextWindow: () => contextWindow,
  });
  screen.status.addChild(status.component);
  const pacer = createPacer(tui);

  const hear = (event: SessionEvent) => {
    if (event.type === "item.added" && event.item.type === "message" && event.item.role === "user") {
      transcript.showPictures(event.item.content);
      const line = waiting.wentIn(partsToText(event.item.content));
      if (line !== undefined) transcript.note(theme.user(`› ${visible(line)}`));
    }
    transcript.show(event);
    status.hear(event);
    if (event.type === "diff.updated") diff = paintDiff(visible(event.diff), theme);
    if (event.type === "turn.ended") {
      waiting.returnToEditor();
      void learnWindow();
    }
    pacer.draw(event.type === "item.delta" || event.type === "exec.output");
  };
  const stopListening = session.on(hear);
  const play = async (content: Parameters<typeof session.send>[0]) => {
    try {
      for await (const _event of session.send(content)) continue; // the events are handled by the listener above
    } catch (error) {
      say(theme.bad(error instanceof Error ? error.message : String(error)));
    }
    playing = undefined;
  };
  /** The message together with what else the model has to be told. */
  const compose = (line: string): string | readonly Part[] => {
    const { content, problems } = readMessage(line, context.cwd);
    for (const problem of problems) say(theme.warn(`! ${problem}`));
    const notice = modes.takeNotice();
    return withBeside([...beside.splice(0), ...(notice === undefined ? [] : [notice])], content);
  };

  return {
    isBusy: () => playing !== undefined || own !== undefined,
    lastDiff: () => diff,
    send(line) {
      const content = compose(line);
      if (playing === undefined) {
        playing = play(content);
        return;
      }
      waiting.add(line, content);
    },
    editQueued: waiting.editLast,
    interrupt() {
      own?.stop.abort();
      if (playing === undefined) return;
      waiting.returnToEditor();
      session.interrupt();
    },
    async runOwn(line) {
      if (line === "")
        return say("! and a command runs it in your own shell; the model is told with your next message");
      if (own !== undefined) return say("a command of yours is running: esc ends it");
      const stop = new AbortController();
      const running = showOwn(screen, line, context.cwd, stop.signal);
      own = { stop, ended: running.then(() => undefined) };
      beside.push(await running);
      own = undefined;
    },
    async close() {
      own?.stop.abort();
      await own?.ended;
      await playing;
      stopListening();
      pacer.stop();
      status.stop();
    },
  };
}

function textOf(content: string | readonly Part[]): string {
  return typeof content === "string" ? content : partsToText(content);
}

/** Runs a command that the person typed, shows its last lines and how it ended, and returns what the model is told. */
async function showOwn({ theme, tui, transcript }: Screen, line: string, cwd: string, signal: AbortSignal) {
  const block = transcript.addBlock();
  let shown = "";
  const draw = (mark: string, end: string) => {
    const lines = visible(shown).trimEnd().split("\n").slice(-ownTailLines);
    const body = lines.map((one) => theme.dim(`  ${one.slice(0, 200)}`));
    block.setText([`${mark} ${theme.strong("!")} ${visible(line)}${end}`, ...(shown === "" ? [] : body)].join("\n"));
    tui.requestRender();
  };
  const hear = (piece: string) => {
    shown = (shown + piece).slice(-8_000);
    draw(theme.accent("●"), "");
  };
  draw(theme.accent("●"), "");
  const ended = await runOwnCommand(line, cwd, hear, signal);
  const isGood = ended.exitCode === 0;
  draw(isGood ? theme.good("✓") : theme.bad("✗"), isGood ? "" : theme.bad(` exit ${ended.exitCode ?? "by a signal"}`));
  return tellOwnCommand(line, ended);
}

/**
 * Drawing a frame takes longer the longer the conversation is, so during a stream of events drawing gets at
 * most a fifth of the time.
 */
function createPacer(tui: TuiMainScreen) {
  const restPerFrame = 4;
  let timer: NodeJS.Timeout | undefined;
  let restUntil = 0;
  const drawNow = () => {
    timer = undefined;
    const startedAt = performance.now();
    tui.renderNow();
    const endedAt = performance.now();
    restUntil = endedAt + Math.max(16, restPerFrame * (endedAt - startedAt));
  };
  return {
    draw(isStream: boolean): void {
      if (!isStream) return tui.requestRender();
      timer ??= setTimeout(drawNow, Math.max(0, restUntil - performance.now()));
    },
    stop: () => clearTimeout(timer),
  };
}

/**
 * Messages for the running turn that were not delivered yet. They are shown above the editor and kept in
 * the session.
 */
function createWaiting({ queue, theme, tui, editor }: Screen, session: Pick<Session, "steer" | "unsteer">) {
  const queued: Queued[] = [];
  const draw = () => {
    queue.clear();
    for (const { line } of queued) queue.addChild(new Text(theme.dim(`↳ queued: ${visible(line)}`), 1, 0));
    if (queued.length > 0) queue.addChild(new Text(theme.dim("  up takes the last one back"), 1, 0));
    tui.requestRender();
  };
  /** The messages that were not delivered are the newest ones. */
  const takeBack = () => queued.splice(Math.max(0, queued.length - session.unsteer().length));
  const add = (line: string, content: Queued["content"]) => {
    session.steer(content);
    queued.push({ line, content });
    draw();
  };
  return {
    add,
    /** The line of the message that was just delivered, if it was queued here. */
    wentIn(text: string): string | undefined {
      if (queued[0] === undefined || textOf(queued[0].content) !== text) return undefined;
      const { line } = queued.shift()!;
      draw();
      return line;
    },
    editLast(): boolean {
      const taken = takeBack();
      const last = taken.pop();
      if (last === undefined) return false;
      for (const { line, content } of taken) add(line, content);
      editor.setText(last.line);
      draw();
      return true;
    },
    returnToEditor(): void {
      if (queued.length === 0) return;
      const lines = takeBack().map(({ line }) => line);
      queued.length = 0;
      editor.setText([...lines, editor.getText()].filter((line) => line !== "").join("\n"));
      draw();
    },
  };
}
