/** The user's own skills and slash commands: Markdown files in a folder of the user, or of a trusted project. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { configDir } from "../../base/paths.ts";
import { isTrusted } from "../policy/trust.ts";

/** How to do something. The model is told its name and description, and reads it when it needs it. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  /** The path of its Markdown file. */
  readonly path: string;
  readonly body: string;
}

/** A message that is written once and sent by name. */
export interface OwnCommand {
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string;
  readonly body: string;
}

export interface OwnPrompts {
  readonly skills: readonly Skill[];
  readonly commands: readonly OwnCommand[];
  /** What could not be used, and why. */
  readonly problems: readonly string[];
}

const namePattern = /^[a-z0-9][a-z0-9_-]{0,63}$/i;
const maxFiles = 200;
const maxBytes = 256 * 1024;

/**
 * `skills/NAME/SKILL.md` (or `skills/NAME.md`) and `commands/NAME.md`. The user's come first, and the
 * project's replace those of the same name.
 */
export function readPrompts(cwd: string, env: NodeJS.ProcessEnv): OwnPrompts {
  const problems: string[] = [];
  const skills = new Map<string, Skill>();
  const commands = new Map<string, OwnCommand>();
  const places = [
    { folder: configDir(env), isOwn: true },
    { folder: join(cwd, ".callgate"), isOwn: false },
  ];
  for (const { folder, isOwn } of places) {
    const read = (path: string) => readMarkdown(path, isOwn, problems);
    for (const { name, path } of markdownIn(join(folder, "skills"), "SKILL.md")) {
      const file = read(path);
      if (file === undefined) continue;
      const given = file.fields.get("name") ?? name;
      const description = file.fields.get("description") ?? firstSentence(file.body);
      if (!namePattern.test(given)) problems.push(`${path}: '${given}' is no name of a skill`);
      else skills.set(given, { name: given, description, path, body: file.body });
    }
    for (const { name, path } of markdownIn(join(folder, "commands"))) {
      const file = namePattern.test(name) ? read(path) : undefined;
      if (!namePattern.test(name)) problems.push(`${path}: '${name}' is no name of a command`);
      if (file === undefined) continue;
      const argumentHint = file.fields.get("argument-hint");
      const description = file.fields.get("description") ?? firstSentence(file.body);
      commands.set(name, {
        name,
        description,
        body: file.body,
        ...(argumentHint === undefined ? {} : { argumentHint }),
      });
    }
  }
  return { skills: [...skills.values()], commands: [...commands.values()], problems };
}

/**
 * `$ARGUMENTS` is everything typed after the name, `$1` to `$9` are its words. Without either, it is
 * added below the text.
 */
export function fillIn(body: string, argument: string): string {
  const words = argument.split(/\s+/).filter(Boolean);
  const hasPlace = /\$(?:ARGUMENTS|[1-9])\b/.test(body);
  const filled = body.replaceAll(/\$(ARGUMENTS|[1-9])\b/g, (_whole, place: string) =>
    place === "ARGUMENTS" ? argument : (words[Number(place) - 1] ?? ""),
  );
  return hasPlace || argument === "" ? filled : `${filled}\n\n${argument}`;
}

function markdownIn(folder: string, inside?: string): readonly { readonly name: string; readonly path: string }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, maxFiles)
    .flatMap((entry) => {
      if (entry.name.endsWith(".md")) return [{ name: entry.name.slice(0, -3), path: join(folder, entry.name) }];
      const path = inside === undefined ? undefined : join(folder, entry.name, inside);
      return path !== undefined && existsSync(path) ? [{ name: entry.name, path }] : [];
    });
}

interface Markdown {
  readonly fields: ReadonlyMap<string, string>;
  readonly body: string;
}

function readMarkdown(path: string, isOwn: boolean, problems: string[]): Markdown | undefined {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return undefined;
    if (stats.size > maxBytes)
      return void problems.push(`${path} is larger than ${maxBytes / 1024} KB and was left out`);
    const text = readFileSync(path, "utf8");
    if (isOwn || isTrusted(path, text)) return parseMarkdown(text);
    return void problems.push(`${path} is not trusted yet and was not read ('callgate trust' shows and trusts it)`);
  } catch (error) {
    return void problems.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Fields between two lines of `---` at the top, one per line. Indented lines continue the one before. */
export function parseMarkdown(text: string): Markdown {
  const head = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\s*(?:\r?\n|$)/.exec(text);
  if (head === null) return { fields: new Map(), body: text.trim() };
  const fields = new Map<string, string>();
  let last: string | undefined;
  for (const line of head[1]!.split(/\r?\n/)) {
    const field = /^([A-Za-z][\w-]*):\s*(.*)$/.exec(line);
    if (field !== null) {
      last = field[1]!.toLowerCase();
      fields.set(last, /^[>|][+-]?$/.test(field[2]!) ? "" : unquote(field[2]!.trim()));
    } else if (last !== undefined && /^\s+\S/.test(line)) fields.set(last, `${fields.get(last)} ${line.trim()}`.trim());
  }
  return { fields, body: text.slice(head[0].length).trim() };
}

function unquote(text: string): string {
  return /^(["']).*\1$/.test(text) ? text.slice(1, -1) : text;
}

function firstSentence(body: string): string {
  const line = body.split("\n").find((one) => one.trim() !== "") ?? "";
  const plain = line.replace(/^#+\s*/, "");
  return plain.length > 100 ? `${plain.slice(0, 99)}…` : plain;
}
