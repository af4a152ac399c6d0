/** The shared attacks and our own of the same form, and the folders they are played in. */
import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempFolder } from "../cli/run.ts";
import { sharedRows } from "../shared/cases.ts";

/** Text as it is, `{repeat, times}`, or a list of both. */
export type Text = string | { readonly repeat: string; readonly times: number } | readonly Text[];

export interface Row {
  readonly id: string;
  readonly kind: "command" | "path" | "patch" | "xml" | "mcp" | "http" | "schema" | "terminal";
  readonly input: unknown;
  readonly expected: string;
  readonly policy?: string;
  readonly shell?: string;
  readonly setup?: readonly string[];
}

/** The maintainers' own, where they lie beside the project; `own` holds every kind without them. */
export const shared = sharedRows("attacks.jsonl", (line) => JSON.parse(line) as Row);
export const own = readFileSync(new URL("./own-rows.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Row);

export function rowsOf(kind: Row["kind"]): readonly (readonly [string, Row])[] {
  return [...shared, ...own].filter((row) => row.kind === kind).map((row) => [row.id, row]);
}

export function toText(text: Text): string {
  if (typeof text === "string") return text;
  return "repeat" in text ? text.repeat.repeat(text.times) : text.map(toText).join("");
}

export interface Folders {
  readonly ws: string;
  readonly out: string;
  readonly home: string;
  readonly state: string;
  /** `{WS}`, `{OUT}` and `{HOME}` filled in. */
  fill(text: string): string;
  /** For the command: nothing of the person who runs the tests. */
  readonly env: Record<string, string>;
}

/** A repository, a folder beside it that must stay as it is, a home, and what the row sets up. */
export function prepare(row: Pick<Row, "setup" | "policy">): Folders {
  const root = realpathSync(tempFolder("row"));
  const [ws, out, home, state] = ["ws", "out", "home", "state"].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [join(ws, "src"), join(out, "victim"), join(home, ".ssh"), state])
    mkdirSync(folder, { recursive: true });
  const files = {
    "ws/README.md": "hello a world\nline two\n",
    "ws/src/a.txt": "a\n",
    "out/secret.txt": "THE SECRET\n",
    "out/target.txt": "target\n",
    "out/victim/f": "f\n",
    "home/.ssh/id_rsa": "THE SECRET key\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  writeFileSync(join(ws, "p.sh"), `#!/bin/sh\ntouch ${out}/pwned\n`, { mode: 0o755 });
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, CALLGATE_HOME: state, GIT_CONFIG_NOSYSTEM: "1" };
  const fill = (text: string) => text.replaceAll("{WS}", ws).replaceAll("{OUT}", out).replaceAll("{HOME}", home);
  const run = (line: string) => void execFileSync("bash", ["-c", line], { cwd: ws, stdio: "ignore", env });
  run("git init -q && git add README.md src && git -c user.name=a -c user.email=a@b commit -qm one");
  for (const line of row.setup ?? []) run(fill(line));
  const rule = /^(allow|deny)-(read|write):(.*)$/s.exec(row.policy ?? "");
  if (rule !== null)
    writeFileSync(
      join(state, "rules.toml"),
      `[[rule]]\npath = ${JSON.stringify(rule[3])}\naccess = "${rule[2]}"\ndecision = "${rule[1]}"\n`,
    );
  return { ws, out, home, state, fill, env };
}

/** Every file below a folder with its content, links as links. */
export function treeOf(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted();
  return Object.fromEntries(
    names.map((name) => {
      const path = join(folder, name);
      const stats = lstatSync(path);
      if (stats.isSymbolicLink()) return [name, `-> ${readlinkSync(path)}`];
      return [name, stats.isFile() && stats.size < 1_000_000 ? readFileSync(path, "utf8") : `${stats.mode}`];
    }),
  );
}
