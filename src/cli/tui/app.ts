/** The interactive session: an editor at the bottom, the conversation above it, questions in between. */
import {
  CombinedAutocompleteProvider,
  Editor,
  matchesKey,
  ProcessTerminal,
  Text,
  TuiMainScreen,
} from "@earendil-works/pi-tui";
import type { Session } from "../../session/index.ts";
import type { Approver } from "../../spec/stages.ts";
import { createApprovalView } from "./approval-view.ts";
import { slashCommands, type SlashContext } from "./slash.ts";
import { visible } from "../visible.ts";
import { createTheme, paintDiff } from "./theme.ts";
import { createTranscriptView } from "./transcript-view.ts";

export interface ChatApp {
  readonly approver: Approver;
  /** Runs until the user leaves. */
  run(context: ChatContext): Promise<Restart | undefined>;
}

export type Restart = Parameters<SlashContext["restart"]>[0];

export interface ChatContext extends Pick<SlashContext, "session" | "engine" | "wire" | "model" | "journalPath"> {
  readonly cwd: string;
  readonly greeting: string;
  runCommand(args: readonly string[]): Promise<string>;
}

export function createChatApp(colour: boolean): ChatApp {
  const theme = createTheme(colour);
  const tui = new TuiMainScreen(new ProcessTerminal());
  const editor = new Editor(tui, theme.editor);
  const transcript = createTranscriptView(theme);
  const status = new Text("", 1, 0);
  const approvals = createApprovalView(
    () => tui,
    theme,
    () => tui.setFocus(editor),
  );
  tui.addChild(transcript.component);
  tui.addChild(approvals.component);
  tui.addChild(status);
  tui.addChild(editor);
  tui.setFocus(editor);

  const run = (context: ChatContext): Promise<Restart | undefined> =>
    new Promise((resolve) => {
      const { session } = context;
      let busy = false;
      let lastDiff: string | undefined;
      const leave = (restart?: Restart) => {
        session.interrupt();
        stopListening();
        tui.stop();
        resolve(restart);
      };
      const say = (text: string) => {
        transcript.note(text);
        tui.requestRender();
      };
      const slash = createSlash({
        ...context,
        note: say,
        lastDiff: () => lastDiff,
        restart: leave,
        quit: () => leave(),
        runCommand: async (args) => say(await context.runCommand(args)),
      });
      const stopListening = session.on((event) => {
        transcript.show(event);
        if (event.type === "diff.updated") lastDiff = paintDiff(visible(event.diff), theme);
        if (event.type === "usage.updated") status.setText(theme.dim(describeStatus(context, event.contextTokens)));
        tui.requestRender();
      });
      const play = async (prompt: string) => {
        busy = true;
        status.setText(theme.dim("working · esc interrupts · type to steer"));
        try {
          for await (const _event of session.send(prompt)) continue;
        } catch (error) {
          say(theme.bad(error instanceof Error ? error.message : String(error)));
        }
        busy = false;
        status.setText(theme.dim(describeStatus(context)));
        tui.requestRender();
      };
      editor.onSubmit = (text) => {
        const line = text.trim();
        if (line === "") return;
        editor.addToHistory(line);
        if (line.startsWith("/")) return void slash(line);
        if (!busy) return void play(line);
        session.steer(line);
        say(theme.dim(`↳ goes in at the next request: ${line}`));
      };
      tui.addInputListener((data) => {
        if (matchesKey(data, "ctrl+c")) return onInterrupt();
        if (matchesKey(data, "escape") && busy && approvals.component.children.length === 0) return onInterrupt();
        if (matchesKey(data, "ctrl+d") && editor.getText() === "") return leaveNow();
        if (matchesKey(data, "ctrl+r")) return unfold();
        return undefined;
      });
      const onInterrupt = () => {
        if (busy) session.interrupt();
        else if (editor.getText() === "") leave();
        else editor.setText("");
        return { consume: true };
      };
      const leaveNow = () => {
        leave();
        return { consume: true };
      };
      const unfold = () => {
        transcript.toggleReasoning();
        tui.requestRender();
        return { consume: true };
      };
      editor.setAutocompleteProvider(new CombinedAutocompleteProvider([...slashCommands], context.cwd));
      transcript.note(context.greeting);
      status.setText(theme.dim(describeStatus(context)));
      tui.start();
    });

  return { approver: approvals, run };
}

function createSlash(context: SlashContext): (line: string) => Promise<void> {
  return async (line) => {
    const [name, ...words] = line.slice(1).split(" ");
    const slash = slashCommands.find((entry) => entry.name === name);
    if (slash === undefined) return context.note(`there is no /${name} (/help lists them)`);
    try {
      await slash.run(context, words.join(" ").trim());
    } catch (error) {
      context.note(error instanceof Error ? error.message : String(error));
    }
  };
}

function describeStatus(
  context: { readonly model: string; readonly wire: string; readonly session: Session },
  contextTokens?: number,
): string {
  const tokens = contextTokens === undefined ? "" : ` · ${contextTokens} tokens`;
  const cost = context.session.costUsd > 0 ? ` · $${context.session.costUsd.toFixed(4)}` : "";
  return `${context.model} · ${context.wire}${tokens}${cost} · /help`;
}
