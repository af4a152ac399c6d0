/** Asks the questions of a conversation in the place where approvals appear. */
import { Input, SelectList, Spacer, type Component, type Container, type TUI } from "@earendil-works/pi-tui";
import type { Asking } from "../chat/person.ts";
import { createHangingText } from "./hanging-text.ts";
import type { Theme } from "./theme.ts";

export interface AskingPlace {
  readonly tui: () => TUI;
  readonly component: Container;
  readonly theme: Theme;
  readonly restoreFocus: () => void;
  /** Prevents keys that were meant for something else from answering. */
  readonly guard: (list: Component, options: { readonly keys: ReadonlyMap<string, () => void> }) => Component;
}

export function createTuiAsking(place: AskingPlace, signal: AbortSignal): Asking {
  const { tui, component, theme, restoreFocus, guard } = place;
  /** Shows the question and its input until there is an answer or nobody waits for one any more. */
  const put = (words: string, draw: (finish: (answer?: string) => void) => Component) =>
    new Promise<string | undefined>((resolve) => {
      const finish = (answer?: string) => {
        signal.removeEventListener("abort", onAbort);
        component.clear();
        restoreFocus();
        tui().requestRender();
        resolve(answer);
      };
      const onAbort = () => finish();
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) return finish();
      component.addChild(new Spacer(1));
      component.addChild(createHangingText(`${theme.warn("?")} ${words}`));
      const drawn = draw(finish);
      component.addChild(drawn);
      tui().setFocus(drawn);
      tui().requestRender();
    });
  return {
    choose: (words, choices) =>
      put(words, (finish) => {
        // Rows are identified by their position, because the values come from a server.
        const rows = choices.map(({ label, description = "" }, n) => ({ value: String(n), label, description }));
        const list = new SelectList(rows, 8, theme.select);
        list.onSelect = ({ value }) => finish(choices[Number(value)]?.value);
        list.onCancel = () => finish();
        const keys = new Map(choices.slice(0, 9).map(({ value }, n) => [String(n + 1), () => finish(value)] as const));
        return guard(list, { keys });
      }),
    write: (words) =>
      put(words, (finish) => {
        const input = new Input();
        input.onSubmit = finish;
        input.onEscape = () => finish();
        return input;
      }),
  };
}
