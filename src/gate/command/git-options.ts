/**
 * What the reading subcommands of git may be told. For each, this lists in full the options that are
 * known to show something and do nothing else. It leaves out all options that write a file, run a
 * program (signatures, pagers, text conversion, other diff tools), read names or patterns from a file
 * or from input, or leave the repository.
 */
import type { OptionSpec } from "./options.ts";

export interface GitForm extends OptionSpec {
  /** Which operands are accepted: none, any (paths and revisions), or only together with one of these options. */
  readonly operands: "none" | "any" | readonly string[];
  /** It shows the content of files: always, or if an option of a patch is given. */
  readonly contents?: "always" | "patch";
}

const words = (...lines: readonly string[]) => lines.join(" ");

/** Options that say which changes to show, one line each, without any content of a file. */
const summaryLong = words(
  "no-patch stat? numstat shortstat dirstat? cumulative dirstat-by-file? summary compact-summary name-only name-status raw",
  "color? no-color abbrev? no-abbrev full-index find-renames? find-copies? find-copies-harder no-renames rename-empty no-rename-empty",
  "irreversible-delete diff-filter= pickaxe-all pickaxe-regex relative? no-relative exit-code quiet no-ext-diff no-textconv",
  "no-indent-heuristic indent-heuristic no-prefix default-prefix src-prefix= dst-prefix= skip-to= rotate-to= ita-invisible-in-index break-rewrites?",
);
const summaryShort = "sM?C?B?S:G:l:zX?";

const patchLong = words(
  "patch unified= patch-with-raw patch-with-stat minimal patience histogram anchored= diff-algorithm= color-moved? no-color-moved color-moved-ws=",
  "no-color-moved-ws word-diff? word-diff-regex= color-words? check ws-error-highlight= binary text ignore-cr-at-eol ignore-space-at-eol",
  "ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= inter-hunk-context= function-context line-prefix= cc",
  "combined-all-paths output-indicator-new= output-indicator-old= output-indicator-context=",
);
const patchShort = "puU:WRabwDcm";

const revisions = words(
  "all branches? tags? remotes? glob= exclude= not max-count= skip= since= after= until= before= since-as-filter= author= committer= grep=",
  "grep-reflog= all-match invert-grep regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp remove-empty merges no-merges",
  "min-parents= max-parents= no-min-parents no-max-parents first-parent exclude-first-parent-only cherry cherry-mark cherry-pick left-only",
  "right-only left-right walk-reflogs boundary simplify-by-decoration show-pulls full-history dense sparse simplify-merges ancestry-path?",
  "date-order author-date-order topo-order reverse no-walk? do-walk parents children",
);

const logLong = words(
  revisions,
  summaryLong,
  patchLong,
  "oneline graph no-graph pretty? format= abbrev-commit no-abbrev-commit encoding= expand-tabs? no-expand-tabs notes? no-notes relative-date date=",
  "count source use-mailmap no-use-mailmap mailmap no-mailmap decorate? no-decorate decorate-refs= decorate-refs-exclude= clear-decorations",
  "log-size full-diff follow diff-merges= no-diff-merges show-linear-break?",
);

const log: GitForm = {
  operands: "any",
  contents: "patch",
  digits: true,
  short: `${summaryShort}${patchShort}n:iEFPgL:rt`,
  long: logLong,
};
const diff: GitForm = {
  operands: "any",
  contents: "always",
  digits: true,
  short: `${summaryShort}${patchShort}rtv0`,
  long: words(summaryLong, patchLong, "cached staged merge-base base ours theirs root no-commit-id always pretty?"),
};

const listing = ["list", "l", "contains", "no-contains", "merged", "no-merged", "points-at"];
const listLong = words(
  "list contains? no-contains? merged? no-merged? points-at= sort= format= column? no-column color? no-color ignore-case omit-empty",
);

const blame: GitForm = {
  operands: "any",
  short: "bltsewnfpcM?C?L:",
  long: words(
    "root show-stats progress no-progress score-debug show-name show-number porcelain line-porcelain incremental encoding= date=",
    "first-parent since= abbrev= show-email minimal color-lines color-by-age ignore-rev= reverse",
  ),
};

/** Options that show no content, although a form with `contents: "patch"` accepts them. */
export const isSummary: ReadonlySet<string> = new Set(
  [
    ...summaryShort.replaceAll(/[:?]/g, ""),
    ..."niEFPgrt",
    ...logLong.split(" ").map((name) => name.replace(/[=?]$/, "")),
  ].filter((name) => !patchLong.split(" ").some((one) => one.replace(/[=?]$/, "") === name)),
);

export const gitForms: ReadonlyMap<string, GitForm> = new Map(
  Object.entries<GitForm>({
    status: {
      operands: "any",
      short: "sbvzu?M?",
      long: words(
        "short branch no-branch show-stash no-show-stash porcelain? long untracked-files? ignore-submodules? ignored? null column? no-column",
        "ahead-behind no-ahead-behind renames no-renames find-renames?",
      ),
    },
    log,
    whatchanged: { ...log, contents: "always" },
    show: { ...log, contents: "always" },
    reflog: log,
    "stash list": log,
    "stash show": { ...diff, long: words(diff.long ?? "", "include-untracked only-untracked") },
    shortlog: {
      operands: "any",
      digits: true,
      short: "nsecw?i",
      long: words(revisions, "numbered summary email committer group= format= date="),
    },
    diff,
    "diff-tree": diff,
    "diff-index": diff,
    "diff-files": { ...diff, short: `${diff.short}q` },
    "range-diff": {
      ...diff,
      long: words(diff.long ?? "", "creation-factor= left-only right-only dual-color no-dual-color"),
    },
    "rev-parse": {
      operands: "any",
      short: "q",
      long: words(
        "show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-git-dir is-inside-work-tree is-bare-repository",
        "is-shallow-repository show-superproject-working-tree abbrev-ref? short? symbolic symbolic-full-name verify quiet all branches? tags?",
        "remotes? glob= exclude= revs-only no-revs flags no-flags not sq disambiguate= since= after= until= before= show-object-format?",
        "git-path= shared-index-path show-ref-format path-format= default= local-env-vars",
      ),
    },
    "rev-list": {
      operands: "any",
      digits: true,
      short: "n:iEFPg",
      long: words(
        revisions,
        "count oneline pretty? format= abbrev-commit no-abbrev-commit abbrev? timestamp header objects objects-edge no-object-names",
        "date= graph no-graph no-commit-header commit-header disk-usage? use-mailmap",
      ),
    },
    "merge-base": { operands: "any", short: "a", long: "all octopus independent is-ancestor fork-point" },
    "name-rev": { operands: "any", long: "tags refs= exclude= name-only no-undefined undefined always all" },
    describe: {
      operands: "any",
      long: "all tags contains abbrev= candidates= exact-match debug long match= exclude= always first-parent dirty? broken?",
    },
    blame,
    annotate: blame,
    grep: {
      operands: "any",
      contents: "always",
      digits: true,
      short: "iwvhHEGFPnlLcpWzoqraIe:A:B:C:m:",
      long: words(
        "cached text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp",
        "perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match count color? no-color break heading",
        "show-function function-context max-depth= max-count= after-context= before-context= context= and or not all-match quiet only-matching",
        "null recursive no-recursive threads= no-textconv",
      ),
    },
    "ls-files": {
      operands: "any",
      short: "cdmoisktvfzx:u",
      long: words(
        "cached deleted modified others ignored stage killed unmerged eol debug exclude= exclude-standard directory no-directory",
        "no-empty-directory empty-directory error-unmatch full-name abbrev? deduplicate format= resolve-undo",
      ),
    },
    "ls-tree": {
      operands: "any",
      short: "drtlz",
      long: "long name-only name-status object-only full-name full-tree abbrev? format=",
    },
    "cat-file": { operands: "any", contents: "always", short: "tspe", long: "use-mailmap no-use-mailmap mailmap" },
    "for-each-ref": {
      operands: "any",
      long: words(
        "count= sort= format= points-at= merged? no-merged? contains? no-contains? shell perl python tcl color? no-color ignore-case omit-empty",
        "exclude=",
      ),
    },
    "show-ref": {
      operands: "any",
      short: "s?dq",
      long: "head heads tags branches dereference hash? verify quiet abbrev? exists",
    },
    "count-objects": { operands: "none", short: "vH", long: "verbose human-readable" },
    "check-ignore": { operands: "any", short: "qvnz", long: "quiet verbose non-matching" },
    "check-attr": { operands: "any", short: "az", long: "all cached" },
    cherry: { operands: "any", short: "v", long: "verbose abbrev?" },
    branch: {
      operands: listing,
      short: "arvli",
      long: words(listLong, "all remotes verbose show-current abbrev? no-abbrev"),
    },
    tag: { operands: listing, short: "ln?i", long: listLong },
    "worktree list": { operands: "none", short: "vz", long: "porcelain verbose expire=" },
    "symbolic-ref": { operands: "any", short: "q", long: "quiet short recurse no-recurse" },
    version: { operands: "none", long: "build-options" },
  }),
);
