/** Lets a person choose with the keyboard which effects of a held run are kept. */
import { matchesKey, truncateToWidth, type Component } from "@earendil-works/pi-tui";
import { toVisibleLine } from "../../gate/show.ts";
import type { EffectLine } from "../../spec/effects.ts";
import type { Theme } from "./theme.ts";

export interface ChooseOptions {
  readonly lines: readonly EffectLine[];
  readonly theme: Theme;
  /** Called with every path of the chosen lines, or with undefined if the person went back. */
  readonly done: (paths: readonly string[] | undefined) => void;
  readonly changed: () => void;
}

const maxRows = 12;

export function createEffectChooser({ lines, theme, done, changed }: ChooseOptions): Component {
  const chosen = new Set(lines.keys());
  let at = 0;
  const toggle = (index: number) => void (chosen.delete(index) || chosen.add(index));
  return {
    render(width) {
      const first = Math.max(0, Math.min(at - Math.floor(maxRows / 2), lines.length - maxRows));
      const rows = lines.slice(first, first + maxRows).map((line, row) => {
        const index = first + row;
        const box = chosen.has(index) ? "[x]" : "[ ]";
        return truncateToWidth(`${index === at ? theme.strong("›") : " "} ${box} ${paintEffect(line, theme)}`, width);
      });
      const more = lines.length - maxRows;
      return [
        ...rows,
        ...(more > 0 ? [theme.dim(truncateToWidth(`  ${chosen.size} of ${lines.length} chosen`, width))] : []),
        ...hints(width).map((hint) => theme.dim(truncateToWidth(hint, width))),
      ];
    },
    invalidate() {},
    handleInput(data) {
      if (matchesKey(data, "up")) at = Math.max(0, at - 1);
      else if (matchesKey(data, "down")) at = Math.min(lines.length - 1, at + 1);
      else if (matchesKey(data, "space")) toggle(at);
      else if (data === "a") {
        if (chosen.size === lines.length) chosen.clear();
        else for (const index of lines.keys()) chosen.add(index);
      } else if (matchesKey(data, "escape")) return done(undefined);
      else if (matchesKey(data, "enter")) return done([...chosen].flatMap((index) => lines[index]?.paths ?? []));
      changed();
    },
  };
}

/** The hints are on one line if there is room. The drawing library throws if a line is too long. */
function hints(width: number): readonly string[] {
  const [first, second] = ["  space chooses · a all or none", "enter keeps these · esc goes back"];
  const line = `${first} · ${second}`;
  return line.length <= width ? [line] : [first, `  ${second}`];
}

/** Deletions and warnings are drawn in the colour of danger. Names of files never act on the terminal. */
export function paintEffect({ mark, text }: EffectLine, theme: Theme): string {
  const line = `${mark} ${toVisibleLine(text)}`;
  if (mark === "-" || mark === "!") return theme.bad(line);
  return mark === "+" ? theme.good(line) : mark === "~" ? theme.warn(line) : line;
}
