/**
 * git subcommands that only look. They are harmless only if the repository's own settings run
 * nothing, which the caller checks with `repositoryDoubt` (git-config.ts).
 */
import { isSecretName } from "../paths.ts";
import type { Judgement } from "./found.ts";
import { gitForms, isSummary } from "./git-options.ts";
import type { GitForm } from "./git-options.ts";
import { parseOptions } from "./options.ts";
import type { ParsedOptions } from "./options.ts";

const why = (text: string): Judgement => ({ why: text });

export function judgeGit(args: readonly string[]): Judgement {
  const start = readGlobals(args);
  if ("why" in start) return start;
  const [name, ...rest] = args.slice(start.next);
  if (name === undefined || name === "--version") return { reads: [] };
  const found = subcommand(name, rest);
  if ("why" in found) return found;
  return { ...found, reads: [...start.folders, ...found.reads], repository: start.folders.at(-1) ?? "." };
}

const plainGlobals = new Set([
  "--no-pager",
  "-P",
  "--no-optional-locks",
  "--literal-pathspecs",
  "--no-replace-objects",
]);

function readGlobals(
  args: readonly string[],
): { readonly next: number; readonly folders: readonly string[] } | { readonly why: string } {
  const folders: string[] = [];
  let index = 0;
  for (; index < args.length && args[index]!.startsWith("-") && args[index] !== "--version"; index++) {
    const option = args[index]!;
    if (option === "-c" && isPlainOverride(args[index + 1] ?? "")) index++;
    else if (option === "-C" && folders.length === 0 && args[index + 1] !== undefined) folders.push(args[++index]!);
    else if (!plainGlobals.has(option)) return { why: `git ${option} can change what git runs` };
  }
  return { next: index, folders };
}

/** Settings for colours, dates and advice, which start nothing whatever their value. */
export function isPlainOverride(setting: string): boolean {
  return /^(color\.[\w.]+|core\.(quotepath|abbrev)|log\.(date|decorate)|advice\.\w+)=[\w-]*$/i.test(setting);
}

/** Subcommands whose second word says what they do. */
const twoWords = new Set(["stash", "worktree"]);
/** What `git reflog` can do instead of showing. Older versions look for these words after options too. */
const reflogActions = new Set(["expire", "delete", "exists", "drop", "write"]);

function subcommand(name: string, args: readonly string[]): Judgement {
  const [first = "", ...others] = args;
  if (twoWords.has(name)) return judgeForm(`${name} ${first}`, others);
  if (name === "reflog") {
    if (args.some((arg) => reflogActions.has(arg))) return why("git reflog with these arguments");
    return judgeForm(name, first === "show" || first === "list" ? others : args);
  }
  if (name === "remote") return isPlainRemote(args) ? { reads: [] } : why("git remote with these arguments");
  if (name === "symbolic-ref" && args.filter((arg) => !arg.startsWith("-")).length !== 1)
    return why("git symbolic-ref with a second name changes the first");
  if (name === "config")
    return isPlainSetting(args) ? { reads: [] } : why("git config with these arguments is not known to be harmless");
  return judgeForm(name, args);
}

function isPlainRemote(args: readonly string[]): boolean {
  const [first = "", second = ""] = args;
  if (args.length < 2) return ["", "-v", "--verbose"].includes(first);
  return args.length === 2 && first === "get-url" && !second.startsWith("-");
}

/** Reading one setting that holds no address and no password. */
function isPlainSetting(args: readonly string[]): boolean {
  const [key = "", ...rest] = args[0] === "--get" || args[0] === "get" ? args.slice(1) : args;
  return rest.length === 0 && /^(user|core|branch|init|pull|push|color|diff|merge)\.[\w.-]+$/i.test(key);
}

function judgeForm(name: string, args: readonly string[]): Judgement {
  const form = gitForms.get(name);
  if (form === undefined) return why(`git ${name.trim()} is not known to be harmless`);
  const parsed = parseOptions(args, form);
  if ("unknown" in parsed) return why(`git ${name} ${parsed.unknown} is not known to be harmless`);
  const { options, operands } = parsed;
  const values = options.flatMap(({ value }) => value ?? []);
  // If git reads an option differently from us, this word could be an option of its own.
  const swallowed = args.find((arg, at) => at > 0 && arg.startsWith("-") && values.includes(arg));
  if (swallowed !== undefined) return why(`git ${name} ${swallowed} may be read in two ways`);
  if (form.operands === "none" && operands.length > 0) return why(`git ${name} with operands`);
  if (typeof form.operands !== "string" && operands.length > 0) {
    const lists = options.some((option) => form.operands.includes(option.name));
    if (!lists) return why(`git ${name} with a name changes something`);
  }
  if (values.some((value) => /%[-+ ]*G|%\(signature/.test(value)))
    return why("a git format that checks signatures runs a program");
  const named = [...operands, ...values];
  const secret = named.map((word) => word.slice(word.lastIndexOf(":") + 1)).find(isSecretName);
  if (secret !== undefined) return why(`${secret} looks like a file with secrets`);
  // A revision is not a path, but one that is absolute or climbs is checked as if it were. `HEAD:file` stays inside
  // the objects.
  const reads = named.filter((word) => word.startsWith("/") || word.split("/").includes(".."));
  return { reads, contents: showsContents(form, parsed) };
}

function showsContents({ contents }: GitForm, { options }: ParsedOptions): boolean {
  return contents === "always" || (contents === "patch" && !options.every(({ name }) => isSummary.has(name)));
}
