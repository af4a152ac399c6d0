/**
 * git subcommands that only look. They are harmless only if the repository's own settings run
 * nothing, which the caller checks with `repositoryDoubt` (git-config.ts).
 */
import { isSecretName } from "../paths.ts";
import type { Judgement } from "./found.ts";

const why = (text: string): Judgement => ({ why: text });

/** Options that write, run a program, or look elsewhere. git takes any unique beginning of a long option. */
const harmful = [
  "help",
  "output",
  "ext-diff",
  "textconv",
  "filters",
  "open-files-in-pager",
  "exec",
  "upload-pack",
  "receive-pack",
  "no-index",
  "show-signature",
  "edit",
  "edit-description",
  "set-upstream-to",
  "unset-upstream",
  "delete",
  "move",
  "copy",
  "force",
  "create-reflog",
  "track",
  "recurse-submodules",
  "submodule",
  "contents",
  "ignore-revs-file",
  "paginate",
  "output-directory",
  "batch-command",
  "stdin",
  "pathspec-from-file",
  "from-file",
  "exclude-from",
  "sign",
  "local-user",
  "file",
  "message",
  "annotate",
  "cleanup",
  "orphan",
  "remote",
];

/** Whole names that begin like a harmful one and are not. */
const exceptions = new Set([
  "exclude",
  "text",
  "format",
  "cc",
  "tracked",
  "stdin-paths",
  "remotes",
  "full-index",
  "follow",
  "first-parent",
  "fixed-strings",
  "files-with-matches",
  "function-context",
  "find-renames",
  "find-copies",
  "date-order",
  "decorate",
  "count",
  "color",
  "column",
  "contains",
  "all",
  "author",
  "committer",
  "merged",
  "merges",
]);

interface Form {
  /** Operands it may have: none, any (paths and revisions), or only after one of these options. */
  readonly operands: "none" | "any" | readonly string[];
  /** Letters that must not appear as short options. */
  readonly not?: string;
}

const forms: ReadonlyMap<string, Form> = new Map<string, Form>(
  Object.entries<Form>({
    status: { operands: "any" },
    log: { operands: "any" },
    shortlog: { operands: "any" },
    show: { operands: "any" },
    diff: { operands: "any" },
    "diff-tree": { operands: "any" },
    "diff-index": { operands: "any" },
    "diff-files": { operands: "any" },
    "rev-parse": { operands: "any" },
    "rev-list": { operands: "any" },
    "merge-base": { operands: "any" },
    "name-rev": { operands: "any" },
    describe: { operands: "any" },
    blame: { operands: "any", not: "S" },
    annotate: { operands: "any", not: "S" },
    grep: { operands: "any", not: "Of" },
    "ls-files": { operands: "any", not: "X" },
    "ls-tree": { operands: "any" },
    "cat-file": { operands: "any" },
    "for-each-ref": { operands: "any" },
    "show-ref": { operands: "any" },
    "count-objects": { operands: "none" },
    "check-ignore": { operands: "any" },
    "check-attr": { operands: "any" },
    whatchanged: { operands: "any" },
    cherry: { operands: "any" },
    "range-diff": { operands: "any" },
    branch: { operands: ["list", "l", "contains", "no-contains", "merged", "no-merged", "points-at"], not: "dDmMcCfu" },
    tag: { operands: ["list", "l", "contains", "no-contains", "merged", "no-merged", "points-at"], not: "asumFdfve" },
    version: { operands: "none" },
  }),
);

/** Subcommands that show what is in files. */
const showing = new Set(
  "show diff diff-tree diff-index diff-files grep stash whatchanged range-diff cat-file".split(" "),
);

export function judgeGit(args: readonly string[]): Judgement {
  const start = readGlobals(args);
  if ("why" in start) return start;
  const [name, ...rest] = args.slice(start.next);
  if (name === undefined || name === "--version") return { reads: [] };
  const found = subcommand(name, rest);
  if ("why" in found) return found;
  const contents = showing.has(name) || (name === "log" && rest.some((arg) => /^-(p|u|G|S|-patch|-unified)/.test(arg)));
  return { reads: [...start.folders, ...found.reads], repository: start.folders.at(-1) ?? ".", contents };
}

function readGlobals(
  args: readonly string[],
): { readonly next: number; readonly folders: readonly string[] } | { readonly why: string } {
  const folders: string[] = [];
  let index = 0;
  for (; index < args.length && args[index]!.startsWith("-") && args[index] !== "--version"; index++) {
    const option = args[index]!;
    if (option === "-c" && isPlainOverride(args[index + 1] ?? "")) index++;
    else if (option === "-C" && folders.length === 0 && args[index + 1] !== undefined) folders.push(args[++index]!);
    else if (
      !["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"].includes(option)
    )
      return { why: `git ${option} can change what git runs` };
  }
  return { next: index, folders };
}

/** Colours, dates and advice: settings that start nothing whatever they are set to. */
export function isPlainOverride(setting: string): boolean {
  return /^(color\.[\w.]+|core\.(quotepath|abbrev)|log\.(date|decorate)|advice\.\w+)=[\w-]*$/i.test(setting);
}

function subcommand(name: string, args: readonly string[]): Judgement {
  const form = forms.get(name);
  if (form !== undefined) return judgeForm(name, args, form);
  const first = args[0] ?? "";
  if (name === "remote")
    return args.length === 0 ||
      (args.length === 1 && ["-v", "--verbose"].includes(first)) ||
      (first === "get-url" && args.length === 2 && !args[1]!.startsWith("-"))
      ? { reads: [] }
      : why("git remote with these arguments");
  if (name === "stash" && first === "list") return judgeForm("stash list", args.slice(1), { operands: "any" });
  if (name === "stash" && first === "show") return judgeForm("stash show", args.slice(1), { operands: "any" });
  if (name === "worktree" && first === "list") return judgeForm("worktree list", args.slice(1), { operands: "none" });
  if (name === "reflog" && (args.length === 0 || first === "show" || first.startsWith("-")))
    return judgeForm("reflog", args, { operands: "any" });
  if (
    name === "symbolic-ref" &&
    args.filter((arg) => !arg.startsWith("-")).length === 1 &&
    !args.some((arg) => /^-(d|m|-d)/.test(arg))
  )
    return { reads: [] };
  if (name === "config" && isPlainSetting(args)) return { reads: [] };
  return why(`git ${name} is not known to be harmless`);
}

/** Reading one setting that holds no address and no password. */
function isPlainSetting(args: readonly string[]): boolean {
  const [key = "", ...rest] = args[0] === "--get" || args[0] === "get" ? args.slice(1) : args;
  return rest.length === 0 && /^(user|core|branch|init|pull|push|color|diff|merge)\.[\w.-]+$/i.test(key);
}

function judgeForm(name: string, args: readonly string[], form: Form): Judgement {
  const end = args.indexOf("--");
  const before = end < 0 ? args : args.slice(0, end);
  const options = before.filter((arg) => arg.startsWith("-") && arg !== "-");
  const bad = options.find((option) => isHarmful(option, form.not ?? ""));
  if (bad !== undefined) return why(`git ${name} ${bad} is not known to be harmless`);
  const operands = [...before.filter((arg) => !arg.startsWith("-")), ...(end < 0 ? [] : args.slice(end + 1))];
  if (form.operands === "none" && operands.length > 0) return why(`git ${name} with operands`);
  if (
    Array.isArray(form.operands) &&
    operands.length > 0 &&
    !options.some((option) => form.operands.includes(option.replace(/^--?/, "").replace(/=.*/, "")))
  )
    return why(`git ${name} with a name changes something`);
  if (before.some((arg) => /%G|%\(signature/.test(arg)))
    return why("a git format that checks signatures runs a program");
  const secret = operands.map((operand) => operand.slice(operand.lastIndexOf(":") + 1)).find(isSecretName);
  if (secret !== undefined) return why(`${secret} looks like a file with secrets`);
  // A revision is no path, but one that is absolute or climbs is checked as one; `HEAD:file` stays inside the objects.
  return { reads: operands.filter((operand) => operand.startsWith("/") || operand.split("/").includes("..")) };
}

function isHarmful(option: string, letters: string): boolean {
  if (!option.startsWith("--")) {
    // Letters come in clusters, the last with its value glued on: `-iO./p` is -i and -O.
    const [cluster = ""] = /^-[a-zA-Z]*/.exec(option) ?? [];
    return option.startsWith("-O") || [...letters].some((letter) => cluster.includes(letter));
  }
  const name = option.slice(2).replace(/=.*/s, "");
  // Switching something off is harmless; `--no-index` switches nothing off.
  if (name.startsWith("no")) return "no-index".startsWith(name);
  if (exceptions.has(name)) return false;
  return harmful.some((bad) => bad === name || (name.length > 0 && bad.startsWith(name)));
}
