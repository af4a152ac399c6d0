/**
 * Files that run later. What is written into them runs outside every sandbox, when somebody opens or
 * enters the folder, commits, installs or builds. The file tools, the sandbox and the diff of a turn
 * share this table. A name without a slash matches at any depth; `*` stands for part of a name.
 */
import { foldName } from "../base/names.ts";
import { bareRepositoryFile, isInside, writtenPath } from "./paths.ts";
import type { Policy } from "./policy-type.ts";
import { matchName } from "./rules.ts";

/**
 * `protected`: runs without anybody starting it; asked about always, read-only in the sandbox.
 * `asked`: changes what a package manager or a build with credentials does; asked about for the file
 * tools, open in the sandbox, because installers write them.
 * `flagged`: ordinary code of the project that somebody starts; no question, but the turn's diff says so.
 */
export type RunLaterKind = "protected" | "asked" | "flagged";

/** Patterns of files that run by themselves later, in three kinds. */
export type RunLater = Readonly<Record<RunLaterKind, readonly string[]>>;

const names = (...lines: readonly string[]) => lines.flatMap((line) => line.split(" "));

export const runLater: RunLater = {
  protected: names(
    // git and similar programs run what their settings and hooks say.
    ".git .gitmodules .gitconfig .hg .jj .githooks .husky",
    // The settings of agents name programs to start.
    ".callgate callgate.toml .mcp.json .claude .claude.json .codex .agents .gemini .cursor .cursorrules .opencode opencode.json opencode.jsonc .windsurf .windsurfrules .continue .aider.conf.yml .cline .clinerules .roo .kilocode .amazonq .qwen .crush.json crush.json .goose .kiro .trae .junie .augment .zencoder",
    // Editors run these when somebody opens the folder.
    ".vscode .idea .zed .fleet .vs .theia .devcontainer .devcontainer.json .exrc .nvimrc .nvim.lua .lvimrc .vimrc .gvimrc .vim .dir-locals.el .emacs .emacs.d .ycm_extra_conf.py",
    // These run when somebody enters the folder.
    ".envrc .direnvrc .mise.toml mise.toml .mise .autoenv",
    // Shells and programs that read a file of their own at every start.
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .config/fish .inputrc .xprofile .xinitrc .xsessionrc .pam_environment .config/autostart .config/systemd .gdbinit .lldbinit .ripgreprc .psqlrc .sqliterc .irbrc .pryrc .Rprofile .screenrc .tmux.conf .lessfilter .ssh",
  ),
  asked: names(
    "*.code-workspace .gitattributes",
    ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .pnpmfile.mjs bunfig.toml .cargo/config.toml .cargo/config .gemrc .bundle/config pip.conf .pypirc .netrc .tool-versions .asdfrc .terraformrc ansible.cfg .mvn .gradle init.gradle gradle/wrapper .bazelrc .sbtopts .jvmopts",
    ".github .gitlab-ci.yml .gitlab .circleci .travis.yml azure-pipelines.yml azure-pipelines.yaml .azure-pipelines .buildkite bitbucket-pipelines.yml .drone.yml .woodpecker.yml .woodpecker .teamcity .semaphore appveyor.yml .appveyor.yml Jenkinsfile cloudbuild.yaml cloudbuild.yml .gitea .forgejo .cirrus.yml vercel.json netlify.toml renovate.json .renovaterc",
    ".pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook .overcommit.yml .lintstagedrc .lintstagedrc.json .lintstagedrc.js .simple-git-hooks.json .simple-git-hooks.js .simple-git-hooks.cjs",
    "sitecustomize.py usercustomize.py *.pth .pdbrc .pythonrc.py .jupyter .ipython",
    "node_modules/.bin .venv/bin venv/bin .venv/Scripts venv/Scripts",
  ),
  flagged: names(
    "package.json Makefile makefile GNUmakefile *.mk CMakeLists.txt configure meson.build build.ninja conftest.py setup.py setup.cfg pyproject.toml noxfile.py tox.ini tasks.py fabfile.py manage.py build.rs Cargo.toml Dockerfile Containerfile docker-compose.yml docker-compose.yaml compose.yaml compose.yml",
    "Rakefile Gemfile *.gemspec Justfile justfile Taskfile.yml Vagrantfile Procfile flake.nix shell.nix default.nix build.gradle build.gradle.kts settings.gradle settings.gradle.kts pom.xml build.xml build.sbt gradlew mvnw Podfile Package.swift mix.exs project.clj BUILD BUILD.bazel WORKSPACE MODULE.bazel",
    "*.config.js *.config.mjs *.config.cjs *.config.ts *.config.mts *.conf.js gulpfile.js Gruntfile.js .eslintrc.js .eslintrc.cjs .babelrc.js .prettierrc.js .mocharc.js binding.gyp",
    "AGENTS.md CLAUDE.md GEMINI.md",
  ),
};

/** The table with the names of a user's settings beside ours. */
export function joinRunLater(more: Partial<RunLater> = {}): RunLater {
  const join = (kind: RunLaterKind) => [...new Set([...runLater[kind], ...(more[kind] ?? [])])];
  return { protected: join("protected"), asked: join("asked"), flagged: join("flagged") };
}

/**
 * The name in the list that a path below the workspace matches, if any. Names are compared as loosely
 * as any file system does.
 */
export function findName(below: string, list: readonly string[]): string | undefined {
  const steps = below.split("/").map(foldName).filter(Boolean);
  const { byFirst, wild } = foldedNames(list);
  let first = Infinity;
  for (let at = 0; at < steps.length; at++)
    for (const names of [byFirst.get(steps[at]!), wild])
      for (const { wanted, place } of names ?? [])
        if (place < first && wanted.every((own, index) => matchName(steps[at + index] ?? "", own))) first = place;
  return list[first];
}

interface FoldedName {
  readonly wanted: readonly string[];
  /** Its position in the list, because the first name that matches is returned. */
  readonly place: number;
}

interface FoldedNames {
  /** The names by their first component. Nearly all of them are here. */
  readonly byFirst: ReadonlyMap<string, readonly FoldedName[]>;
  /** Those whose first component has a wildcard. */
  readonly wild: readonly FoldedName[];
}

/** A list is folded once, because it has hundreds of names and every file of every patch is compared with it. */
const folded = new WeakMap<readonly string[], FoldedNames>();

function foldedNames(list: readonly string[]): FoldedNames {
  const known = folded.get(list);
  if (known !== undefined) return known;
  const byFirst = new Map<string, FoldedName[]>();
  const wild: FoldedName[] = [];
  for (const [place, name] of list.entries()) {
    const wanted = name.split("/").map(foldStep);
    const [first = ""] = wanted;
    if (first.includes("*")) wild.push({ wanted, place });
    else byFirst.set(first, [...(byFirst.get(first) ?? []), { wanted, place }]);
  }
  const names = { byFirst, wild };
  folded.set(list, names);
  return names;
}

function foldStep(name: string): string {
  return name.includes("*") ? name.toLowerCase() : foldName(name);
}

/** Which kind of file that runs later a path of the workspace is. The strictest kind is tried first. */
export function kindOf(below: string, table: RunLater = runLater): RunLaterKind | undefined {
  const kinds = ["protected", "asked", "flagged"] as const;
  return kinds.find((kind) => findName(below, table[kind]) !== undefined);
}

/** The name of a file that runs later, wherever the path is written or leads to below a root that may be changed. */
export function findLater(path: string, cwd: string, policy: Policy): string | undefined {
  // The workspace is most often one of the roots, and a path most often leads where it says.
  const { workspace, writable } = policy;
  const roots = writable.includes(workspace) ? writable : [workspace, ...writable];
  const plain = writtenPath(path, cwd);
  const real = policy.real(path, cwd) ?? "";
  for (const place of plain === real ? [plain] : [plain, real])
    for (const root of roots) {
      if (!isInside(place, root)) continue;
      const name = findName(place.slice(root.length), policy.asked) ?? bareRepositoryFile(place);
      if (name !== undefined) return name;
    }
  return undefined;
}
