/** Text from anybody, made safe to look at: Markdown without scripts, characters that hide themselves made visible. */
import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { Marked } from "marked";
import { createHiddenPattern } from "../src/base/hidden.ts";

const languages = { bash, css, diff, go, javascript, json, markdown, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);
hljs.registerAliases(["sh", "shell", "console", "zsh"], { languageName: "bash" });
hljs.registerAliases(["js", "jsx", "mjs"], { languageName: "javascript" });
hljs.registerAliases(["ts", "tsx"], { languageName: "typescript" });
hljs.registerAliases(["html", "svg"], { languageName: "xml" });
hljs.registerAliases(["py"], { languageName: "python" });
hljs.registerAliases(["yml"], { languageName: "yaml" });

const maxHighlighted = 20_000;
const marked = new Marked({
  gfm: true,
  renderer: {
    code({ text, lang }) {
      const name = lang?.split(/\s/)[0] ?? "";
      const isKnown = name !== "" && hljs.getLanguage(name) !== undefined && text.length <= maxHighlighted;
      const body = isKnown ? hljs.highlight(text, { language: name, ignoreIllegals: true }).value : escapeHtml(text);
      return `<pre><code>${body}</code></pre>`;
    },
    // HTML in an answer is text: nobody needs it, and much can be hidden in it.
    html: ({ text }) => escapeHtml(text),
    // A picture elsewhere would be a request to another host: its address is shown instead.
    image: ({ href, text }) => escapeHtml(`[picture: ${text} ${href}]`),
  },
});

const allowed = {
  ALLOWED_TAGS: [
    "p",
    "br",
    "strong",
    "em",
    "del",
    "code",
    "pre",
    "span",
    "ul",
    "ol",
    "li",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "a",
    "input",
  ],
  ALLOWED_ATTR: ["href", "class", "align", "type", "checked", "disabled", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("target", "_blank");
  // The address itself, so that words cannot hide where a link leads.
  node.setAttribute("title", node.getAttribute("href") ?? "");
});

const maxMarkdown = 200_000;

/** `breaks`: every line of what a person typed stays a line. */
export function toSafeHtml(text: string, { breaks = false } = {}): string {
  const shown = visible(text);
  if (shown.length > maxMarkdown) return `<pre>${escapeHtml(shown)}</pre>`;
  return DOMPurify.sanitize(marked.parse(shown, { async: false, breaks }), allowed);
}

/** What a terminal takes as an order: colours, moves of the cursor, titles of windows. */
const terminalOrders = /(?![\n\r\t])\p{Cc}(?:\[[0-9;?]*[ -/]*[@-~]|\][^\p{Cc}]*(?![\n\r\t])\p{Cc}\\?)/gu;

const hidden = createHiddenPattern();

/** Orders to a terminal are left out. All other characters that nobody would see are shown by their number. */
export function visible(text: string): string {
  return text
    .replaceAll(terminalOrders, "")
    .replaceAll(hidden, (character) => `⟦U+${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}⟧`);
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** The fields that tell most of a call, the most telling first. */
const telling = [
  "command",
  "cmd",
  "chars",
  "pattern",
  "query",
  "path",
  "file_path",
  "dir_path",
  "url",
  "input",
  "name",
  "server",
];

/** A call's input in a line of words: the command, the path, the files of a patch, or what else tells most. */
export function describeInput(input: unknown): string {
  if (typeof input === "string") return firstLine(patchedFiles(input) ?? input);
  if (typeof input !== "object" || input === null) return "";
  const fields = input as Readonly<Record<string, unknown>>;
  for (const name of telling) {
    const value = fields[name];
    if (typeof value === "string" && value !== "") return firstLine(patchedFiles(value) ?? value);
    if (Array.isArray(value) && value.every((word) => typeof word === "string")) return firstLine(value.join(" "));
  }
  return "";
}

function patchedFiles(text: string): string | undefined {
  if (!text.startsWith("*** Begin Patch")) return undefined;
  const files = [...text.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map(([, file]) => file);
  return files.length === 0 ? undefined : files.join(", ");
}

/** Whether the line of words already says all of it. */
export function isToldBy(line: string, input: unknown): boolean {
  if (typeof input !== "object" || input === null) return true;
  const values = Object.values(input);
  return values.length === 0 || (values.length === 1 && values[0] === line);
}

export function firstLine(text: string, length = 160): string {
  const line = visible(text.split("\n", 1)[0] ?? "");
  return line.length > length || text.includes("\n") ? `${line.slice(0, length)} …` : line;
}

export function describeMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000
    ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function describeCount(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}
