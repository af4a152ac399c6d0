/** Which formatter a project uses for a file, judged by files and dependencies of the project. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";

export interface Formatter {
  readonly name: string;
  readonly argv: readonly string[];
  readonly path: string;
}

interface Candidate {
  readonly name: string;
  readonly extensions: readonly string[];
  /** Files that show that the project uses it, searched from the source file upwards. */
  readonly signs: readonly string[];
  /** A dependency of the project that shows the same. */
  readonly dependency?: string;
  readonly command: (file: string, workspace: string) => readonly string[];
}

const web = [".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".json", ".css", ".md", ".html"];

/** Tried in this order. The first one that the project shows signs of is its formatter. */
const candidates: readonly Candidate[] = [
  {
    name: "oxfmt",
    extensions: web,
    signs: [".oxfmtrc.json"],
    dependency: "oxfmt",
    command: (file, at) => [local(at, "oxfmt"), file],
  },
  {
    name: "biome",
    extensions: web,
    signs: ["biome.json", "biome.jsonc"],
    dependency: "@biomejs/biome",
    command: (file, at) => [local(at, "biome"), "format", "--write", file],
  },
  {
    name: "prettier",
    extensions: [...web, ".yml", ".yaml", ".scss", ".vue"],
    signs: [".prettierrc", ".prettierrc.json", ".prettierrc.yaml", "prettier.config.js", "prettier.config.mjs"],
    dependency: "prettier",
    command: (file, at) => [local(at, "prettier"), "--write", file],
  },
  {
    name: "ruff",
    extensions: [".py"],
    signs: ["ruff.toml", ".ruff.toml"],
    command: (file) => ["ruff", "format", file],
  },
  { name: "black", extensions: [".py"], signs: ["pyproject.toml"], command: (file) => ["black", "--quiet", file] },
  { name: "gofmt", extensions: [".go"], signs: ["go.mod"], command: (file) => ["gofmt", "-w", file] },
  { name: "rustfmt", extensions: [".rs"], signs: ["Cargo.toml", "rustfmt.toml"], command: (file) => ["rustfmt", file] },
  {
    name: "clang-format",
    extensions: [".c", ".h", ".cc", ".cpp", ".hpp"],
    signs: [".clang-format"],
    command: (file) => ["clang-format", "-i", file],
  },
];

/** Which formatter the project uses for a file. Nothing is run to find out. */
export function findFormatter(path: string, workspace: string, cwd: string): Formatter | undefined {
  const file = resolve(cwd, path);
  const extension = extname(file).toLowerCase();
  const packages = dependenciesOf(workspace);
  const found = candidates.find(
    ({ extensions, signs, dependency }) =>
      extensions.includes(extension) &&
      ((dependency !== undefined && packages.has(dependency)) || hasSign(signs, dirname(file), workspace)),
  );
  return found && { name: found.name, argv: found.command(file, workspace), path: file };
}

function local(workspace: string, name: string): string {
  const own = join(workspace, "node_modules", ".bin", name);
  return existsSync(own) ? own : name;
}

function hasSign(signs: readonly string[], from: string, workspace: string): boolean {
  for (let folder = from; ; folder = dirname(folder)) {
    if (signs.some((sign) => existsSync(join(folder, sign)))) return true;
    if (folder === workspace || folder === dirname(folder)) return false;
  }
}

function dependenciesOf(workspace: string): ReadonlySet<string> {
  try {
    const manifest = JSON.parse(readFileSync(join(workspace, "package.json"), "utf8")) as Record<string, unknown>;
    const lists = [manifest["dependencies"], manifest["devDependencies"]];
    return new Set(lists.flatMap((list) => (typeof list === "object" && list !== null ? Object.keys(list) : [])));
  } catch {
    // Without a readable manifest, no formatter is named.
    return new Set();
  }
}
