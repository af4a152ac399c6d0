/**
 * Whether a repository's own configuration runs anything when git only reads. Settings known to run
 * nothing are listed. Any other key, an include, or a hook that fires on reading means that a person
 * is asked.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { findRepository, readIndex, readPlain } from "../git-repository.ts";
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
    // Something there cannot be read by us, but git might be able to read it.
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
    indexHookDoubt(commonDir) ??
    (existsSync(join(commonDir, "modules")) ? "submodules bring their own git settings" : undefined) ??
    gitlinkDoubt(gitDir)
  );
}

/** Hooks that the repository has switched on. They run when git changes something. */
export function activeHook(folder: string): string | undefined {
  const found = findRepository(folder);
  if (found === undefined || typeof found === "string") return found;
  const hooks = join(found.commonDir, "hooks");
  if (!existsSync(hooks)) return undefined;
  const active = readdirSync(hooks).find((name) => !name.endsWith(".sample"));
  return active === undefined ? undefined : `the hook ${active} would run`;
}

/** A file with secrets that the repository tracks. A command that shows contents may show it. */
export function trackedSecret(folder: string): string | undefined {
  try {
    const found = findRepository(folder);
    if (found === undefined || typeof found === "string") return undefined;
    const index = join(found.gitDir, "index");
    const size = statSync(index, { throwIfNoEntry: false })?.size ?? 0;
    // Larger ones were refused earlier, when the repository's settings were read.
    if (size === 0 || size > 20_000_000) return undefined;
    const data = readFileSync(index);
    // Paths are stored as they are, each ended by a zero byte. In version 4 a path holds only what differs from the
    // one before.
    const names = data.toString("latin1").split(/[^\x20-\x7e]/);
    return [...readIndex(data), ...names].find((path) => path !== "" && isSecretName(path));
  } catch {
    return "an index that cannot be read";
  }
}

/** git runs this hook when `status` or `diff` refreshes the index. */
function indexHookDoubt(commonDir: string): string | undefined {
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
  if (readdirSync(gitDir).some((name) => name.startsWith("sharedindex.")))
    return "the git index is split into two files, and only one is looked through";
  // Mode 160000 as bytes of an entry. An accidental match only asks once too often.
  return readFileSync(index).includes(Buffer.from([0, 0, 0xe0, 0]))
    ? "repositories inside the repository bring their own git settings"
    : undefined;
}

function configDoubt(path: string): string | undefined {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  if (size > maxConfigBytes) return "the git settings are too large to look through";
  return keysOf(readPlain(path))
    .map((key) => (key === undefined ? "the git settings are not understood" : keyDoubt(key)))
    .find((doubt) => doubt !== undefined);
}

function keyDoubt(key: ConfigKey): string | undefined {
  if (key.name === "core.bare") return undefined;
  const known = quiet.has(key.name) || quiet.has(`${key.section}.*.${key.key}`) || quiet.has(`${key.section}.*`);
  return known ? undefined : `the repository sets ${key.name}, which can make git run or read something else`;
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
  for (const line of joinedLines(text.replaceAll("\r\n", "\n"))) {
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

/**
 * The lines, with those joined that a backslash continues. A backslash continues only a value: not a
 * comment after `#` or `;`, and not if another backslash escapes it.
 */
function joinedLines(text: string): readonly string[] {
  const lines: string[] = [];
  let line = "";
  let isQuoted = false;
  let isComment = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char === "\n") {
      lines.push(line);
      line = "";
      isQuoted = isComment = false;
    } else if (isComment) continue;
    else if (char === "\\") {
      const next = text[++at] ?? "";
      line += next === "\n" ? " " : char + next;
    } else {
      if (char === '"') isQuoted = !isQuoted;
      isComment = !isQuoted && (char === "#" || char === ";");
      line += char;
    }
  }
  return [...lines, line];
}
