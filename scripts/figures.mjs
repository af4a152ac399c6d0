// The figures in README.md, taken from bench/RESULTS.md: `node scripts/figures.mjs` after a measurement. test/docs.test.ts
// checks that both say the same.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** The rows of the first table after `heading`, as objects by column. */
function tableAfter(text, heading) {
  const lines = text.slice(text.indexOf(heading)).split("\n");
  const start = lines.findIndex((line) => line.startsWith("|"));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith("|"));
  const cells = (line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
  const [names, , ...rows] = lines.slice(start, end).map(cells);
  return rows.map((row) => Object.fromEntries(row.map((cell, index) => [names[index], cell])));
}

/** The first of `p50 / p95`, in at most two digits where it is small. */
function short(cell) {
  const value = Number.parseFloat(cell);
  if (Number.isNaN(value)) throw new Error(`no figure in '${cell}'`);
  return value < 10 ? String(Number(value.toPrecision(2))) : String(Math.round(value));
}

const peers = [
  ["floor: bare node loop", "bare Node loop"],
  ["callgate (responses, workspace-write)", "Callgate"],
  ["pi", "pi"],
  ["codex (workspace-write)", "codex"],
];
const measures = [
  ["start until the first model request", "#### Start,", "cold start ms", "ms"],
  ["a shell call: overhead, with a fresh sandbox each (pi: none)", "#### Overhead", "shell `true` ms", "ms"],
  ["first request (prompt and tools)", "#### Start,", "first request KB", "KB"],
  ["memory for one turn", "#### Start,", "peak RSS MB", "MB"],
];
const streams = [
  ["Chat Completions", "chat", "openai SDK"],
  ["Responses", "responses", "openai SDK"],
  ["Messages", "messages", "Anthropic SDK"],
];

/** The block of README.md, from the text of bench/RESULTS.md. */
export function figures(results) {
  const speed = measures.map(([title, heading, column, unit]) => {
    const rows = tableAfter(results, heading);
    const cells = peers.map(([name, shown]) => {
      const found = rows.find((row) => row.peer.replace("~", "") === name);
      if (found === undefined) throw new Error(`bench/RESULTS.md has no row '${name}' after '${heading}'`);
      const figure = `${short(found[column])} ${unit}`;
      return shown === "Callgate" ? `**${figure}**` : figure;
    });
    return `| ${title} | ${cells.join(" | ")} |`;
  });
  const wire = tableAfter(results, "## wire\n").filter(({ what }) => what.endsWith(": bytes to answer"));
  const reading = streams.map(([title, name, sdk]) => {
    const rows = wire.filter(({ what }) => what === `${name}: bytes to answer`);
    const other = (peer) => {
      const cell = rows.find(({ against }) => against.includes(`× ${peer} (`))?.against;
      return cell === undefined ? "" : `${short(/\(([\d.]+) MB\/s\)/.exec(cell)[1])} MB/s`;
    };
    return `| ${title} | **${short(rows[0].figure)} MB/s** | ${other(sdk)} | ${other("AI SDK compatible")} |`;
  });
  return [
    `| | ${peers.map(([, shown]) => shown).join(" | ")} |`,
    "|---|--:|--:|--:|--:|",
    ...speed,
    "",
    "| reading a streamed answer | Callgate | official SDK | AI SDK |",
    "|---|--:|--:|--:|",
    ...reading.map((row) => row.replaceAll("|  |", "| |")),
    "",
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const readme = readFileSync("README.md", "utf8");
  const block = figures(readFileSync("bench/RESULTS.md", "utf8"));
  writeFileSync(
    "README.md",
    readme.replace(/<!-- figures -->\n[\s\S]*?<!-- \/figures -->/, `<!-- figures -->\n${block}<!-- /figures -->`),
  );
}
