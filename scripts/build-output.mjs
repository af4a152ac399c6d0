// What becomes of a chunk after the bundler wrote it: the shape that the command's loader reads (src/cli/kept-code.ts),
// lines that a stack trace can name, and a map from them to src/.
import { decode, encode } from "@jridgewell/sourcemap-codec";
import { parseSync } from "rolldown/utils";

/** A chunk as it is published: its code, and its map if anything in it is ours. */
export function finishChunk({ fileName, code, map }) {
  const edits = [...lineBreaks(code), ...importMarks(code), ...asciiLetters(code)].toSorted((a, b) => a.at - b.at);
  const { text, moved } = applyEdits(code, edits);
  const own = map && toOwnMap(map, code, text, moved);
  if (!own) return { code: text };
  const json = JSON.stringify(own);
  const isSmall = json.length <= maxInlineMap;
  const name = isSmall
    ? `data:application/json;base64,${Buffer.from(json).toString("base64")}`
    : `${fileName.split("/").at(-1)}.map`;
  return {
    code: `${text.trimEnd()}\n//# sourceMappingURL=${name}\n`,
    ...(isSmall ? {} : { map: json }),
  };
}

/** A file takes whole blocks of the disk, so a small map of its own would take several times its length. */
const maxInlineMap = 2_048;

/**
 * A line for each statement: Node shows the line an uncaught error was thrown on, which must not be the whole file.
 * Imports and exports stay in one: the command's loader reads them there.
 */
function lineBreaks(code) {
  const places = new Set();
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (node === null || typeof node !== "object") return;
    const list = node.type === "SwitchCase" ? node.consequent : node.body;
    if (Array.isArray(list))
      for (const { type, start } of list) if (start > 0 && !/^(?:Import|Export)/.test(type)) places.add(start);
    for (const key in node) if (key !== "parent") visit(node[key]);
  };
  visit(parseSync("a.js", code).program);
  return [...places].map((at) => ({ at, remove: 0, insert: "\n" }));
}

/** `import(` in code, told from the same word in a text, which only a parser can. */
function importMarks(code) {
  return parseSync("a.js", code).module.dynamicImports.map(({ start }) => ({
    at: start + "import(".length,
    remove: 0,
    insert: "/*later*/",
  }));
}

/** V8 keeps a text with one wider letter at two bytes for each, and reads it more slowly. */
function asciiLetters(code) {
  return [...code.matchAll(/\\[^]|[^\0-\x7f]/g)]
    .filter(([match]) => match.at(-1) > "\x7f")
    .map(({ 0: match, index }) => ({
      at: index,
      remove: match.length,
      insert: `\\u${match.at(-1).charCodeAt(0).toString(16).padStart(4, "0")}`,
    }));
}

/** The edited text, and where an offset of the old one went. */
function applyEdits(code, edits) {
  const pieces = [];
  const places = [];
  let from = 0;
  let shift = 0;
  for (const { at, remove, insert } of edits) {
    pieces.push(code.slice(from, at), insert);
    from = at + remove;
    shift += insert.length - remove;
    places.push({ from, shift });
  }
  const moved = (offset) => {
    let low = 0;
    let high = places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle].from <= offset) low = middle + 1;
      else high = middle;
    }
    return offset + (places[low - 1]?.shift ?? 0);
  };
  return { text: [...pieces, code.slice(from)].join(""), moved };
}

/**
 * Which line of which of our files each place came from, and nothing finer: columns, names and the sources themselves
 * would make the package half as big again. What is foreign is marked as coming from nowhere.
 */
function toOwnMap(map, code, text, moved) {
  const starts = lineStarts(code);
  const newStarts = lineStarts(text);
  const sources = [];
  const indexes = map.sources.map((source) => {
    const path = source.replaceAll("\\", "/");
    return /^(?:\.\.\/)+src\//.test(path) ? sources.push(path) - 1 : undefined;
  });
  const lines = newStarts.map(() => []);
  const nowhere = "";
  let line = 0;
  let last = nowhere;
  for (const [at, segments] of decode(map.mappings).entries()) {
    for (const [column, from, fromLine] of segments) {
      const place = moved(starts[at] + column);
      while (newStarts[line + 1] <= place) {
        line++;
        // Each line of ours begins with its own; what comes from nowhere goes on doing so.
        if (last !== nowhere) last = undefined;
      }
      const index = from === undefined ? undefined : indexes[from];
      const now = index === undefined ? nowhere : `${index}:${fromLine}`;
      if (now === last) continue;
      last = now;
      const to = place - newStarts[line];
      lines[line].push(index === undefined ? [to] : [to, index, fromLine, 0]);
    }
  }
  if (sources.length === 0) return undefined;
  // Empty rather than absent: bundlers would look for the files, and warn that they are not there.
  return { version: 3, sources, sourcesContent: sources.map(() => ""), names: [], mappings: encode(lines) };
}

function lineStarts(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
