/** A list to choose from, in the place where questions appear: arrows move, typing narrows it down, Esc leaves it. */
import {
  fuzzyFilter,
  Input,
  matchesKey,
  SelectList,
  Spacer,
  type Component,
  type Focusable,
} from "@earendil-works/pi-tui";
import type { Choice } from "../chat/person.ts";
import type { AskingPlace } from "./asking.ts";
import { createHangingText } from "./hanging-text.ts";
import type { Theme } from "./theme.ts";

const maxRows = 10;

export function pick(
  { tui, component, theme, restoreFocus }: Omit<AskingPlace, "guard">,
  words: string,
  choices: readonly Choice[],
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const finish = (value?: string) => {
      component.clear();
      restoreFocus();
      tui().requestRender();
      resolve(value);
    };
    const picker = createPicker(theme, choices, finish);
    component.addChild(new Spacer(1));
    component.addChild(createHangingText(`${theme.accent("?")} ${words} ${theme.dim("(type to search, esc leaves)")}`));
    component.addChild(picker);
    tui().setFocus(picker);
    tui().requestRender();
  });
}

function createPicker(
  theme: Theme,
  choices: readonly Choice[],
  finish: (value?: string) => void,
): Component & Focusable {
  const search = new Input();
  // Rows are identified by their position, because the names come from elsewhere.
  const rows = choices.map(({ label, description = "" }, n) => ({ value: String(n), label, description }));
  let list = makeList(rows);
  function makeList(shown: typeof rows): SelectList {
    const made = new SelectList(shown, maxRows, theme.select, { maxPrimaryColumnWidth: 48 });
    made.onSelect = ({ value }) => finish(choices[Number(value)]?.value);
    return made;
  }
  return {
    focused: false,
    render: (width) => [...search.render(width), ...list.render(width)],
    invalidate() {
      search.invalidate();
      list.invalidate();
    },
    handleInput(data) {
      if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c")) return finish();
      if (["up", "down", "enter"].some((key) => matchesKey(data, key as "up" | "down" | "enter")))
        return list.handleInput(data);
      const before = search.getValue();
      search.handleInput(data);
      if (search.getValue() === before) return;
      list = makeList(fuzzyFilter(rows, search.getValue(), ({ label, description }) => `${label} ${description}`));
    },
  };
}
