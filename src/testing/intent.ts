/**
 * What the offline model understands of a prompt: a few plain requests, one after another. It is a
 * phrase book and not a language model, and says so when it does not understand.
 */
export type Intent =
  | { readonly kind: "read"; readonly path: string }
  | { readonly kind: "list"; readonly path: string }
  | { readonly kind: "find"; readonly pattern: string; readonly path: string }
  | { readonly kind: "run"; readonly command: string }
  | { readonly kind: "replace"; readonly old: string; readonly new: string; readonly path: string }
  | { readonly kind: "plan"; readonly steps: readonly string[] }
  | { readonly kind: "call"; readonly tool: string; readonly input: string }
  | { readonly kind: "say"; readonly words: string };

/** Steps are separated by line ends, `; then` or `, then`. What matches no phrase is left out. */
export function readIntents(prompt: string): readonly Intent[] {
  return prompt
    .split(/\n|[;,.]?\s+(?:and\s+)?then\s+/i)
    .map((piece) => piece.trim().replace(/^[-*\d.)\s]+/, ""))
    .flatMap((piece) => {
      const intent = readIntent(piece);
      return intent ? [intent] : [];
    });
}

const quoted = `(?:'([^']*)'|"([^"]*)"|\`([^\`]*)\`|(\\S+))`;

const phrases: readonly (readonly [RegExp, (words: readonly string[], rest: string) => Intent])[] = [
  [
    new RegExp(`^(?:please\\s+)?(?:read|show|open|cat)\\s+(?:me\\s+)?(?:the\\s+)?(?:file\\s+)?${quoted}`, "i"),
    ([path]) => ({ kind: "read", path: path! }),
  ],
  [
    new RegExp(
      `^(?:please\\s+)?(?:find|search(?:\\s+for)?|grep(?:\\s+for)?)\\s+${quoted}(?:\\s+in\\s+${quoted})?`,
      "i",
    ),
    ([pattern, path]) => ({ kind: "find", pattern: pattern!, path: path ?? "." }),
  ],
  [
    new RegExp(`^(?:please\\s+)?(?:list|ls)(?:\\s+(?:the\\s+)?(?:files\\s+)?(?:in\\s+|of\\s+)?${quoted})?`, "i"),
    ([path]) => ({ kind: "list", path: path ?? "." }),
  ],
  [
    new RegExp(`^(?:please\\s+)?replace\\s+${quoted}\\s+(?:with|by)\\s+${quoted}\\s+in\\s+${quoted}`, "i"),
    ([old, next, path]) => ({ kind: "replace", old: old!, new: next!, path: path! }),
  ],
  [/^(?:please\s+)?(?:run|execute)\s+(.+)$/i, (_, rest) => ({ kind: "run", command: unquote(rest) })],
  [/^\$\s+(.+)$/, (_, rest) => ({ kind: "run", command: rest })],
  [
    /^(?:please\s+)?(?:make\s+a\s+)?plan:?\s+(.+)$/i,
    (_, rest) => ({ kind: "plan", steps: rest.split(/\s*[;,]\s*/).filter((step) => step !== "") }),
  ],
  [/^(?:please\s+)?(?:say|answer)\s+(.+)$/i, (_, rest) => ({ kind: "say", words: unquote(rest) })],
];

function readIntent(piece: string): Intent | undefined {
  const call =
    /^(?:please\s+)?(?:call|use|fetch)\s+(?:the\s+)?(?:tool\s+)?([\w./-]+)\s*(?:with\s+)?(\{.*\})?\s*$/i.exec(piece);
  if (call) return { kind: "call", tool: call[1]!, input: call[2] ?? "{}" };
  for (const [phrase, make] of phrases) {
    const match = phrase.exec(piece);
    if (match) return make(groups(match), match[1] ?? "");
  }
  return undefined;
}

/** Each quoted word is one of four groups, whichever quote was used. */
function groups(match: RegExpExecArray): readonly string[] {
  const words: string[] = [];
  for (let index = 1; index < match.length; index += 4) {
    const word = match.slice(index, index + 4).find((group) => group !== undefined);
    if (word !== undefined) words.push(word);
  }
  return words;
}

function unquote(text: string): string {
  const match = /^(['"`])([\s\S]*)\1$/.exec(text.trim());
  return match ? match[2]! : text.trim();
}
