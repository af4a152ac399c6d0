import { styleText } from "node:util";
import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui";

type Paint = (text: string) => string;
type Style = Parameters<typeof styleText>[0];

/** Colours by meaning. Without colour each function returns the text unchanged. */
export interface Theme {
  readonly isColoured: boolean;
  readonly dim: Paint;
  readonly strong: Paint;
  readonly good: Paint;
  readonly bad: Paint;
  readonly warn: Paint;
  readonly accent: Paint;
  readonly user: Paint;
  readonly select: SelectListTheme;
  readonly editor: EditorTheme;
  readonly markdown: MarkdownTheme;
}

export function createTheme(colour: boolean): Theme {
  const paint = (style: Style): Paint =>
    colour ? (text) => styleText(style, text, { validateStream: false }) : (text) => text;
  const [dim, strong, good, bad, warn, accent] = [
    paint("dim"),
    paint("bold"),
    paint("green"),
    paint("red"),
    paint("yellow"),
    paint("cyan"),
  ];
  const select: SelectListTheme = {
    selectedPrefix: accent,
    selectedText: accent,
    description: dim,
    scrollInfo: dim,
    noMatch: dim,
  };
  return {
    isColoured: colour,
    dim,
    strong,
    good,
    bad,
    warn,
    accent,
    user: paint(["bold", "blue"]),
    select,
    editor: { borderColor: dim, selectList: select },
    markdown: {
      heading: paint(["bold", "cyan"]),
      link: accent,
      linkUrl: dim,
      code: paint("yellow"),
      codeBlock: (text) => text,
      codeBlockBorder: dim,
      quote: paint("italic"),
      quoteBorder: dim,
      hr: dim,
      listBullet: accent,
      bold: strong,
      italic: paint("italic"),
      strikethrough: paint("strikethrough"),
      underline: paint("underline"),
    },
  };
}

/** Colours a unified diff line by line. */
export function paintDiff(diff: string, theme: Theme): string {
  return diff
    .split("\n")
    .map((line) => {
      if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("diff ")) return theme.strong(line);
      if (line.startsWith("@@")) return theme.accent(line);
      if (line.startsWith("+")) return theme.good(line);
      return line.startsWith("-") ? theme.bad(line) : line;
    })
    .join("\n");
}
