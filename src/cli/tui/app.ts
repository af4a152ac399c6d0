/** The interactive session: an editor at the bottom, the conversation above it, questions in between. */
import { Container, Editor, matchesKey, ProcessTerminal, Spacer, Text, TuiMainScreen } from "@earendil-works/pi-tui";
import { partsToText } from "../../base/content.ts";
import type { SessionEvent } from "../../session/index.ts";
import type { Person } from "../chat/person.ts";
import type { PromptHistory } from "../chat/prompt-history.ts";
import { visible } from "../chat/visible.ts";
import { createApprovalView, type ApprovalView } from "./approval-view.ts";
import { readMessage } from "./attach.ts";
import { createCompletion } from "./complete.ts";
import { loadHighlight } from "./highlight.ts";
import { createSlash, slashCommands, type SlashContext } from "./slash.ts";
import { createStatusLine } from "./status-line.ts";
import { createTheme, paintDiff, type Theme } from "./theme.ts";
import { createTranscriptView, type TranscriptView } from "./transcript-view.ts";

export interface ChatApp {
  /** Whom calls are asked about, and servers' questions. */
  readonly person: Person;
  /** Says something beside the conversation. */
  note(text: string): void;
  /** Runs until the user leaves. */
  run(context: ChatContext): Promise<Restart | undefined>;
}

export type Restart = Parameters<SlashContext["restart"]>[0];

export interface ChatContext extends Pick<SlashContext, "session" | "engine" | "wire" | "model" | "journalPath"> {
  readonly cwd: string;
  readonly greeting: string;
  readonly prompts: PromptHistory;
  /** Shows what was said before, where the screen does not have it yet. */
  readonly showHistory: boolean;
  runCommand(args: readonly string[]): Promise<string>;
}

interface Screen {
  readonly theme: Theme;
  readonly tui: TuiMainScreen;
  readonly editor: Editor;
  readonly transcript: TranscriptView;
  readonly approvals: ApprovalView;
  /** Messages that wait for the next request. */
  readonly queue: Container;
  readonly status: Container;
}

export function createChatApp(colour: boolean): ChatApp {
  const theme = createTheme(colour);
  const tui = new TuiMainScreen(new ProcessTerminal());
  const editor = new Editor(tui, theme.editor);
  const approvals = createApprovalView(
    () => tui,
    theme,
    () => tui.setFocus(editor),
  );
  const transcript = createTranscriptView(theme);
  const screen: Screen = { theme, tui, editor, transcript, approvals, queue: new Container(), status: new Container() };
  for (const part of [transcript.component, approvals.component, new Spacer(1), screen.queue, screen.status, editor])
    tui.addChild(part);
  tui.setFocus(editor);
  const note = (text: string) => {
    transcript.note(text);
    tui.requestRender();
  };
  return { person: approvals, note, run: (context) => runChat(screen, context) };
}

function runChat(screen: Screen, context: ChatContext): Promise<Restart | undefined> {
  const { editor, theme, transcript, tui } = screen;
  const { session, prompts } = context;
  return new Promise((resolve) => {
    const say = (text: string) => {
      transcript.note(text);
      tui.requestRender();
    };
    const talk = createTalk(screen, context, say);
    const leave = async (restart?: Restart) => {
      for (const signal of endSignals) process.off(signal, onSignal);
      session.interrupt();
      await talk.close();
      // The conversation stays on the screen; an editor that nobody reads any more does not.
      tui.clear();
      tui.addChild(transcript.component);
      tui.renderNow();
      tui.stop();
      resolve(restart);
    };
    const onSignal = () => void leave();
    for (const signal of endSignals) process.once(signal, onSignal);
    const slash = createSlash({
      ...context,
      note: say,
      isBusy: talk.isBusy,
      lastDiff: talk.lastDiff,
      restart: (flags) => void leave(flags),
      quit: () => void leave(),
      runCommand: async (args) => say(visible(await context.runCommand(args))),
    });
    editor.onSubmit = (text) => {
      const line = text.trim();
      if (line === "") return;
      editor.addToHistory(line);
      prompts.add(line);
      if (line.startsWith("/") && !line.slice(1).split(" ")[0]!.includes("/")) void slash(line);
      else talk.send(line);
    };
    tui.addInputListener((data) => onKey(data, screen, { talk, session, leave }));
    editor.setAutocompleteProvider(createCompletion(slashCommands, context.cwd));
    for (const prompt of prompts.prompts) editor.addToHistory(prompt);
    if (context.showHistory) transcript.showHistory(session.history);
    transcript.note(theme.dim(context.greeting));
    tui.start();
    if (theme.isColoured)
      void loadHighlight().then((highlight) => {
        theme.markdown.highlightCode = highlight;
        tui.invalidate();
      });
  });
}

const endSignals = ["SIGTERM", "SIGHUP"] as const;

/** Sending, queueing and hearing. */
interface Talk {
  readonly isBusy: () => boolean;
  readonly lastDiff: () => string | undefined;
  send(line: string): void;
  /** When the running turn has ended. */
  close(): Promise<void>;
}

function createTalk(screen: Screen, context: ChatContext, say: (text: string) => void): Talk {
  const { theme, tui, transcript } = screen;
  const { session } = context;
  const queued: string[] = [];
  let playing: Promise<void> | undefined;
  let diff: string | undefined;
  const status = createStatusLine({
    ...context,
    theme,
    redraw: () => tui.requestRender(),
    nameOf: transcript.nameOf,
    costUsd: () => session.costUsd,
  });
  screen.status.addChild(status.component);

  const drawQueue = () => {
    screen.queue.clear();
    for (const line of queued) screen.queue.addChild(new Text(theme.dim(`↳ queued: ${visible(line)}`), 1, 0));
  };
  const hear = (event: SessionEvent) => {
    if (event.type === "item.added" && event.item.type === "message" && event.item.role === "user") {
      const line = partsToText(event.item.content);
      if (queued[0] === line) {
        queued.shift();
        drawQueue();
        transcript.note(theme.user(`› ${visible(line)}`));
      }
    }
    transcript.show(event);
    status.hear(event);
    if (event.type === "diff.updated") diff = paintDiff(visible(event.diff), theme);
    tui.requestRender();
  };
  const stopListening = session.on(hear);
  const play = async (content: Parameters<typeof session.send>[0]) => {
    try {
      for await (const _event of session.send(content)) continue; // heard above
    } catch (error) {
      say(theme.bad(error instanceof Error ? error.message : String(error)));
    }
    playing = undefined;
  };

  return {
    isBusy: () => playing !== undefined,
    lastDiff: () => diff,
    send(line) {
      const { content, problems } = readMessage(line, context.cwd);
      for (const problem of problems) say(theme.warn(`! ${problem}`));
      if (playing === undefined) {
        playing = play(content);
        return;
      }
      session.steer(content);
      queued.push(typeof content === "string" ? content : partsToText(content));
      drawQueue();
      tui.requestRender();
    },
    async close() {
      await playing;
      stopListening();
      status.stop();
    },
  };
}

interface KeyTargets {
  readonly talk: Talk;
  readonly session: { interrupt(): void };
  leave(): Promise<void>;
}

const consumed = { consume: true } as const;

function onKey(data: string, screen: Screen, { talk, session, leave }: KeyTargets): typeof consumed | undefined {
  const { editor, transcript, tui, approvals } = screen;
  const isAsking = approvals.component.children.length > 0;
  if (matchesKey(data, "ctrl+c")) {
    if (talk.isBusy()) session.interrupt();
    else if (editor.getText() === "") void leave();
    else editor.setText("");
    return consumed;
  }
  if (matchesKey(data, "escape") && talk.isBusy() && !isAsking && !editor.isShowingAutocomplete()) {
    session.interrupt();
    return consumed;
  }
  if (matchesKey(data, "ctrl+d") && editor.getText() === "" && !isAsking) {
    void leave();
    return consumed;
  }
  if (matchesKey(data, "ctrl+z")) {
    suspend(tui);
    return consumed;
  }
  if (!matchesKey(data, "ctrl+r")) return undefined;
  transcript.toggleReasoning();
  tui.requestRender();
  return consumed;
}

/** Back to the shell until `fg`; a running turn waits too. */
function suspend(tui: TuiMainScreen): void {
  if (process.platform === "win32") return;
  tui.stop();
  const alive = setInterval(() => undefined, 60_000); // nothing else keeps the process while the terminal is let go
  process.once("SIGCONT", () => {
    clearInterval(alive);
    tui.start();
    tui.requestRender(true);
  });
  process.kill(process.pid, "SIGTSTP");
}
