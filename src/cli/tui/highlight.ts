/** Draws code in colour. The library is loaded after the first screen is drawn, so nobody waits for it. */
import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

type Highlight = (code: string, language?: string) => string[];

/** Colours by the class names of the library. What is not listed keeps its colour. */
const styles: Readonly<Record<string, Style>> = {
  keyword: "magenta",
  built_in: "cyan",
  type: "cyan",
  literal: "yellow",
  number: "yellow",
  string: "green",
  regexp: "green",
  comment: "dim",
  doctag: "dim",
  title: "blue",
  attr: "blue",
  attribute: "blue",
  name: "blue",
  meta: "dim",
  addition: "green",
  deletion: "red",
};

/** For longer code, colour is not worth the wait. */
const maxChars = 20_000;

export async function loadHighlight(): Promise<Highlight> {
  const { default: library } = await import("highlight.js/lib/common");
  return (code, language) => {
    if (language === undefined || code.length > maxChars || library.getLanguage(language) === undefined)
      return code.split("\n");
    return paint(library.highlight(code, { language, ignoreIllegals: true }).value).split("\n");
  };
}

/**
 * The library writes HTML. Its spans become colours and its entities characters. A colour always ends at
 * the end of its line.
 */
function paint(html: string): string {
  const open: (Style | undefined)[] = [];
  return [...html.matchAll(/<span class="([^"]*)">|<\/span>|[^<]+/g)]
    .map(([piece, classes]) => {
      if (classes !== undefined) {
        const [name = ""] = classes.replace("hljs-", "").split(/[ .]/);
        open.push(Object.hasOwn(styles, name) ? styles[name] : open.at(-1));
        return "";
      }
      if (piece === "</span>") {
        open.pop();
        return "";
      }
      const style = open.at(-1);
      const lines = unescape(piece).split("\n");
      return lines
        .map((line) => (style === undefined || line === "" ? line : styleText(style, line, { validateStream: false })))
        .join("\n");
    })
    .join("");
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" };

function unescape(text: string): string {
  return text.replaceAll(/&(lt|gt|quot|#x27|amp);/g, (_whole, name: string) => entities[name]!);
}
