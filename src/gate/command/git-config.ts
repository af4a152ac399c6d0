/**
 * Does a repository's own configuration run anything when git only looks? Settings that are known to
 * run nothing are listed; any other key, include or hook that fires on reading means: ask.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isSecretName } from "../paths.ts";

const maxConfigBytes = 200_000;

/** Keys that start nothing when git reads; `*` stands for a subsection. */
const quiet = new Set(
  [
    "core.repositoryformatversion core.filemode core.logallrefupdates core.symlinks core.ignorecase core.precomposeunicode core.autocrlf core.eol core.safecrlf core.quotepath core.abbrev core.untrackedcache core.protecthfs core.protectntfs core.commentchar core.whitespace core.longpaths core.sparsecheckout core.sparsecheckoutcone core.preloadindex core.trustctime core.checkstat core.compression core.loosecompression core.bigfilethreshold core.packedgitlimit core.packedgitwindowsize",
    "user.name user.email user.signingkey user.useconfigonly author.name author.email committer.name committer.email",
    "remote.*.url remote.*.fetch remote.*.pushurl remote.*.push remote.*.tagopt remote.*.prune remote.*.mirror remote.*.skipfetchall remote.pushdefault remote.*.gh-resolved",
    "branch.*.remote branch.*.merge branch.*.rebase branch.*.pushremote branch.*.description branch.*.vscode-merge-base branch.*.github-pr-owner-number branch.*.gh-merge-base branch.autosetupmerge branch.autosetuprebase branch.sort",
    "init.defaultbranch pull.rebase pull.ff push.default push.autosetupremote push.followtags fetch.prune fetch.parallel fetch.prunetags rebase.autosquash rebase.autostash merge.ff merge.conflictstyle merge.renames merge.renamelimit rerere.enabled rerere.autoupdate",
    "diff.algorithm diff.renames diff.renamelimit diff.mnemonicprefix diff.noprefix diff.colormoved diff.context diff.interhunkcontext diff.suppressblankempty log.date log.decorate log.follow log.abbrevcommit status.short status.branch status.showuntrackedfiles tag.sort",
    "color.ui color.branch color.diff color.status column.ui advice.* gc.auto gc.autodetach gc.pruneexpire gc.reflogexpire maintenance.auto maintenance.strategy commit.gpgsign tag.gpgsign commit.verbose extensions.objectformat index.version feature.manyfiles pack.threads http.postbuffer lfs.repositoryformatversion lfs.*.access",
  ].flatMap((line) => line.split(" ")),
);

/** Why git may run something here, or undefined. `folder` is where git would be started. */
export function repositoryDoubt(folder: string): string | undefined {
  try {
    return findDoubt(folder);
  } catch {
    // Something there cannot be read; git might read it all the same.
    return "the git settings cannot be read";
  }
}

function findDoubt(folder: string): string | undefined {
  const found = findRepository(folder);
  if (found === undefined) return "there is no git repository here";
  if (typeof found === "string") return found;
  const { gitDir, commonDir } = found;
  const files = [join(commonDir, "config"), join(gitDir, "config.worktree"), join(commonDir, "config.worktree")];
  return (
    files.map(configDoubt).find((doubt) => doubt !== undefined) ??
    hookDoubt(commonDir) ??
    (existsSync(join(commonDir, "modules")) ? "submodules bring their own git settings" : undefined) ??
    gitlinkDoubt(gitDir)
  );
}

interface Repository {
  readonly gitDir: string;
  readonly commonDir: string;
}

/** As git finds it: upwards, a `.git` folder or file, or a folder that is itself a bare repository. */
function findRepository(folder: string): Repository | string | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const dot = join(at, ".git");
    const kind = statSync(dot, { throwIfNoEntry: false });
    if (kind?.isDirectory() && existsSync(join(dot, "HEAD"))) return { gitDir: dot, commonDir: commonFolder(dot) };
    if (kind?.isFile()) return linkedRepository(dot, at);
    if (existsSync(join(at, "HEAD")) && existsSync(join(at, "objects")) && existsSync(join(at, "refs")))
      return "the folder is a bare repository with settings of its own";
    if (dirname(at) === at) return undefined;
  }
}

function linkedRepository(file: string, folder: string): Repository | string {
  const match = /^gitdir: (.+?)\s*$/.exec(readFileSync(file, "utf8").slice(0, 4_096));
  if (match === null) return "the .git file is not understood";
  const gitDir = resolve(folder, match[1]!);
  return { gitDir, commonDir: commonFolder(gitDir) };
}

function commonFolder(gitDir: string): string {
  const file = join(gitDir, "commondir");
  return existsSync(file) ? resolve(gitDir, readFileSync(file, "utf8").trim()) : gitDir;
}

/** Hooks the repository has switched on: they run when git changes something. */
export function hooksDoubt(folder: string): string | undefined {
  const found = findRepository(folder);
  if (found === undefined || typeof found === "string") return found;
  const hooks = join(found.commonDir, "hooks");
  if (!existsSync(hooks)) return undefined;
  const active = readdirSync(hooks).find((name) => !name.endsWith(".sample"));
  return active === undefined ? undefined : `the hook ${active} would run`;
}

/** A file with secrets that the repository tracks: what shows contents may show it. */
export function trackedSecret(folder: string): string | undefined {
  try {
    const found = findRepository(folder);
    if (found === undefined || typeof found === "string") return undefined;
    const index = join(found.gitDir, "index");
    const size = statSync(index, { throwIfNoEntry: false })?.size ?? 0;
    // Larger ones are refused before, where the repository's settings are looked at.
    if (size === 0 || size > 20_000_000) return undefined;
    // Paths stand in it as they are, each ended by a zero byte.
    const names = readFileSync(index, "latin1").split("\0");
    return names
      .map((piece) => /[\x20-\x7e]+$/.exec(piece)?.[0] ?? "")
      .find((path) => path !== "" && isSecretName(path));
  } catch {
    return undefined;
  }
}

/** git runs this hook when `status` or `diff` refreshes the index. */
function hookDoubt(commonDir: string): string | undefined {
  return existsSync(join(commonDir, "hooks", "post-index-change"))
    ? "the hook post-index-change runs when git looks"
    : undefined;
}

/** A folder that is a repository inside this one: `status` starts git in there, with its settings. */
function gitlinkDoubt(gitDir: string): string | undefined {
  const index = join(gitDir, "index");
  const size = statSync(index, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0) return undefined;
  if (size > 20_000_000) return "the git index is too large to look through";
  // Mode 160000 as it is written in an entry; a chance hit asks once too often.
  return readFileSync(index).includes(Buffer.from([0, 0, 0xe0, 0]))
    ? "repositories inside the repository bring their own git settings"
    : undefined;
}

function configDoubt(path: string): string | undefined {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  if (size > maxConfigBytes) return "the git settings are too large to look through";
  return keysOf(readFileSync(path, "utf8"))
    .map((key) => (key === undefined ? "the git settings are not understood" : keyDoubt(key)))
    .find((doubt) => doubt !== undefined);
}

function keyDoubt(key: ConfigKey): string | undefined {
  if (key.name === "core.bare") return undefined;
  const known = quiet.has(key.name) || quiet.has(`${key.section}.*.${key.key}`) || quiet.has(`${key.section}.*`);
  const plain = quiet.has(`${key.section}.${key.key}`) && key.name === `${key.section}.${key.key}`;
  return known || plain ? undefined : `the repository sets ${key.name}, which can make git run or read something else`;
}

interface ConfigKey {
  readonly name: string;
  readonly section: string;
  readonly key: string;
}

/** The keys a git configuration sets, lower-cased; undefined for a line that is not understood. */
export function keysOf(text: string): readonly (ConfigKey | undefined)[] {
  const keys: (ConfigKey | undefined)[] = [];
  let section: { readonly name: string; readonly sub: string } | undefined;
  for (const line of text.replaceAll("\r\n", "\n").replace(/\\\n/g, " ").split("\n")) {
    let rest = line.trim();
    const header = /^\[\s*([A-Za-z0-9-]+)(?:\.([^\]\s"]+)|\s+"((?:[^"\\]|\\.)*)")?\s*\]/.exec(rest);
    if (header !== null) {
      section = { name: header[1]!.toLowerCase(), sub: header[2] ?? header[3] ?? "" };
      rest = rest.slice(header[0].length).trim();
    }
    if (rest === "" || rest.startsWith("#") || rest.startsWith(";")) continue;
    const key = /^([A-Za-z][A-Za-z0-9-]*)\s*(=|$|[#;])/.exec(rest)?.[1]?.toLowerCase();
    if (key === undefined || section === undefined) keys.push(undefined);
    else
      keys.push({
        section: section.name,
        key,
        name: section.sub === "" ? `${section.name}.${key}` : `${section.name}.${section.sub}.${key}`,
      });
  }
  return keys;
}
