/**
 * What some tests need beyond Node, npm, git and a C compiler. A test that needs one of these is skipped where it is
 * absent, and its title says so: `describe.skipIf(!has("tmux"))("in a terminal (needs tmux)", …)`. The reporter counts
 * these titles and ends the run with one line that says what was skipped and how to get it.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Each need with the way to get it, as the last line of a run tells it. */
export const howToGet = {
  bubblewrap: "apt-get install bubblewrap",
  ripgrep: "apt-get install ripgrep",
  tmux: "apt-get install tmux",
  PostgreSQL: "apt-get install postgresql",
  Chromium: "apt-get install chromium",
  python3: "apt-get install python3",
  "python3-jinja2": "apt-get install python3-jinja2",
  jq: "apt-get install jq",
  busybox: "apt-get install busybox",
  sqlite3: "apt-get install sqlite3",
  strace: "apt-get install strace",
  curl: "apt-get install curl",
  openssl: "apt-get install openssl",
  patch: "apt-get install patch",
  valgrind: "apt-get install valgrind",
  script: "apt-get install bsdutils",
  "the launcher": "install a C compiler (apt-get install gcc), then run npm test again",
  "a sandbox": "apt-get install bubblewrap, or use Linux 5.13 or newer with Landlock",
  "libtest-json-schema-acceptance-perl": "apt-get install libtest-json-schema-acceptance-perl",
  root: "run the tests as root",
  "the shared cases": "they are the maintainers' own and lie beside the project as ../shared",
} as const;

export type Need = keyof typeof howToGet;

const programs: Partial<Record<Need, string>> = { bubblewrap: "bwrap", ripgrep: "rg", Chromium: "chromium" };

/** Whether this machine has it. Sandboxes and the launcher are tried by the tests that use them, not here. */
export function has(need: Need): boolean {
  if (need === "root") return process.getuid?.() === 0;
  if (need === "the shared cases") return sharedFolder !== undefined;
  if (need === "python3-jinja2") return has("python3") && spawnSync("python3", ["-c", "import jinja2"]).status === 0;
  if (need === "PostgreSQL") return postgresFolder() !== undefined;
  return programPath(programs[need] ?? need) !== undefined;
}

/** The first program of this name on the path. */
export function programPath(name: string): string | undefined {
  const places = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return places.map((folder) => join(folder, name)).find(canRun);
}

/** The folder that holds `initdb` and `postgres`: Debian keeps them off the path, in one folder a version. */
export function postgresFolder(): string | undefined {
  const onPath = programPath("initdb");
  if (onPath !== undefined) return join(onPath, "..");
  // A path without `psql` stands for a machine without PostgreSQL, whatever lies in Debian's folder.
  if (programPath("psql") === undefined) return undefined;
  const versions = "/usr/lib/postgresql";
  if (!existsSync(versions)) return undefined;
  const newest = readdirSync(versions).toSorted((a, b) => Number(b) - Number(a));
  return newest.map((version) => join(versions, version, "bin")).find((folder) => canRun(join(folder, "initdb")));
}

const beside = fileURLToPath(new URL("../../shared/data", import.meta.url));

/** The maintainers' further cases, where they lie beside the project. No user has them. */
export const sharedFolder: string | undefined = existsSync(beside) ? beside : undefined;

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
