/** The interactive session: an editor at the bottom, the conversation above it, questions in between. */
import { Container, Editor, matchesKey, ProcessTerminal, Spacer, TuiMainScreen } from "@earendil-works/pi-tui";
import type { Person } from "../chat/person.ts";
import { visible } from "../chat/visible.ts";
import { createApprovalView } from "./approval-view.ts";
import { createCompletion } from "./complete.ts";
import { loadHighlight } from "./highlight.ts";
import { askCellSize, createPictures, watchForSixel } from "./pictures.ts";
import { pick } from "./picker.ts";
import type { ChatContext, Restart } from "./chat-context.ts";
import { createSlash, sessionSlashes } from "./slash.ts";
import { createTalk, type Screen, type Talk } from "./talk.ts";
import { createTheme } from "./theme.ts";
import { createTranscriptView } from "./transcript-view.ts";

export interface ChatApp {
  /** The person who is asked about calls and who answers the questions of servers. */
  readonly person: Person;
  /** Shows a note that is not part of the conversation. */
  note(text: string): void;
  /** Runs until the user leaves. */
  run(context: ChatContext): Promise<Restart | undefined>;
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
  const pictures = createPictures(theme);
  const transcript = createTranscriptView(theme, pictures);
  const screen: Screen = { theme, tui, editor, transcript, approvals, queue: new Container(), status: new Container() };
  for (const part of [transcript.component, approvals.component, new Spacer(1), screen.queue, screen.status, editor])
    tui.addChild(part);
  tui.setFocus(editor);
  const note = (text: string) => {
    transcript.note(text);
    tui.requestRender();
  };
  const watch = () =>
    watchForSixel(process.stdin, () => {
      process.stdout.write(askCellSize);
      void import("./sixel.ts").then(({ toSixelLines }) => {
        pictures.useSixel(toSixelLines);
        tui.requestRender();
      });
    });
  return {
    person: approvals,
    note,
    run(context) {
      const ended = runChat(screen, context, note);
      // The screen has started and reads the keys from now on, so none is lost.
      return ended.finally(watch());
    },
  };
}

function runChat(screen: Screen, context: ChatContext, say: (text: string) => void): Promise<Restart | undefined> {
  const { editor, theme, transcript, tui, approvals } = screen;
  const { session, typed } = context;
  return new Promise((resolve) => {
    const talk = createTalk(screen, context, say);
    const leave = async (restart?: Restart) => {
      for (const signal of endSignals) process.off(signal, onSignal);
      session.interrupt();
      await talk.close();
      // The conversation stays on the screen, and the editor is removed, because nothing reads it any more.
      tui.clear();
      tui.addChild(transcript.component);
      tui.renderNow();
      tui.stop();
      resolve(restart);
    };
    const onSignal = () => void leave();
    for (const signal of endSignals) process.once(signal, onSignal);
    const place = { tui: () => tui, component: approvals.component, theme, restoreFocus: () => tui.setFocus(editor) };
    const slash = createSlash({
      ...context,
      note: say,
      isBusy: talk.isBusy,
      lastDiff: talk.lastDiff,
      // Pickers and the questions of calls take turns, because they are shown in the same place.
      pick: async (words, choices) =>
        approvals.converse(() => pick(place, words, choices), new AbortController().signal),
      send: talk.send,
      restart: (change) => void leave(change),
      quit: () => void leave(),
      runCommand: async (args) => say(visible(await context.runCommand(args))),
    });
    editor.onSubmit = (text) => {
      const line = text.trim();
      if (line === "") return;
      editor.addToHistory(line);
      typed.add(line);
      if (line.startsWith("!")) void talk.runOwn(line.slice(1).trim());
      else if (line.startsWith("/") && !line.slice(1).split(" ")[0]!.includes("/")) void slash(line);
      else talk.send(line);
    };
    const changeMode = () => {
      context.modes.next();
      tui.requestRender();
    };
    tui.addInputListener((data) => onKey(data, screen, { talk, leave, changeMode }));
    editor.setAutocompleteProvider(createCompletion(sessionSlashes(context.prompts), context.cwd));
    for (const prompt of typed.prompts) editor.addToHistory(prompt);
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

interface KeyTargets {
  readonly talk: Talk;
  leave(): Promise<void>;
  changeMode(): void;
}

const consumed = { consume: true } as const;
const cuttingKeys = ["ctrl+u", "ctrl+w", "ctrl+k", "ctrl+y", "alt+backspace", "alt+d"] as const;
const escape = "\u001B";

function onKey(data: string, screen: Screen, { talk, leave, changeMode }: KeyTargets): typeof consumed | undefined {
  const { editor, transcript, tui, approvals } = screen;
  const isAsking = approvals.component.children.length > 0;
  if (matchesKey(data, "ctrl+c") && (talk.isBusy() || !isAsking)) {
    if (talk.isBusy()) talk.interrupt();
    else if (editor.getText() === "") void leave();
    else {
      editor.setText("");
      tui.requestRender();
    }
    return consumed;
  }
  // These keys change the text, and the editor would go on showing what it had proposed for the text before.
  if (editor.isShowingAutocomplete() && cuttingKeys.some((key) => matchesKey(data, key))) editor.handleInput(escape);
  if (matchesKey(data, "escape") && talk.isBusy() && !isAsking && !editor.isShowingAutocomplete()) {
    talk.interrupt();
    return consumed;
  }
  if (matchesKey(data, "ctrl+d") && editor.getText() === "" && !isAsking) {
    void leave();
    return consumed;
  }
  if (matchesKey(data, "shift+tab") && !isAsking) {
    changeMode();
    return consumed;
  }
  if (matchesKey(data, "up") && editor.getText() === "" && !isAsking && talk.editQueued()) return consumed;
  if (matchesKey(data, "ctrl+z")) {
    suspend(tui);
    return consumed;
  }
  if (!matchesKey(data, "ctrl+r")) return undefined;
  transcript.toggleReasoning();
  tui.requestRender();
  return consumed;
}

/** Returns to the shell until `fg`. A running turn waits too. */
function suspend(tui: TuiMainScreen): void {
  if (process.platform === "win32") return;
  tui.stop();
  // nothing else keeps the process alive while the terminal is released
  const alive = setInterval(() => undefined, 60_000);
  process.once("SIGCONT", () => {
    clearInterval(alive);
    tui.start();
    tui.requestRender(true);
  });
  process.kill(process.pid, "SIGTSTP");
}
