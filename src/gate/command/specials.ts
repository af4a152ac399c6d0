/** Programs that are harmless only in some forms, each with its own reading of its arguments. */
import { awkEffect, isPlainAwkVariable } from "./awk.ts";
import { judgeGit } from "./git.ts";
import { isPlainJq } from "./jq.ts";
import type { Judgement } from "./found.ts";
import { parseOptions, type OptionSpec } from "./options.ts";
import { sedScriptDoubt } from "./sed.ts";
import { plainFormat } from "./syntax.ts";

type Judge = (args: readonly string[]) => Judgement;

const why = (text: string): Judgement => ({ why: text });
const nothing: Judgement = { reads: [] };

const findTests = new Map<string, number>(
  Object.entries({
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -printf -used -fstype -lname -ilname": 1,
    "-empty -print -print0 -ls -prune -o -or -a -and -not ! ( ) , -depth -d -xdev -mount -daystart -true -false -quit -executable -readable -writable -nouser -nogroup -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race": 0,
  }).flatMap(([names, count]) => names.split(" ").map((name) => [name, count] as const)),
);

function judgeFind(args: readonly string[]): Judgement {
  const reads: string[] = [];
  let index = 0;
  for (; index < args.length && /^-(H|P|O\d)$/.test(args[index]!); index++);
  for (; index < args.length && !/^[-(!,]/.test(args[index]!); index++) reads.push(args[index]!);
  for (; index < args.length; index++) {
    const test = args[index]!;
    if (/^-(newer|anewer|cnewer|samefile|newer[aBcm][aBcmt])$/.test(test)) {
      const value = args[++index];
      if (value === undefined) return why(`find ${test} without a value`);
      if (!test.endsWith("t")) reads.push(value);
      continue;
    }
    const count = findTests.get(test);
    if (count === undefined) return why(`find ${test} is not known to be harmless`);
    index += count;
  }
  return { reads: reads.length === 0 ? ["."] : reads };
}

const sedSpec: OptionSpec = {
  short: "nEruszbl:e:",
  long: "quiet silent expression= regexp-extended separate unbuffered null-data posix line-length= debug sandbox help version",
};

function judgeSed(args: readonly string[]): Judgement {
  const parsed = parseOptions(args, sedSpec);
  if ("unknown" in parsed) return why(`sed ${parsed.unknown} is not known to be harmless`);
  const scripts = parsed.options
    .filter((option) => option.name === "e" || option.name === "expression")
    .map((option) => option.value ?? "");
  const [first, ...rest] = parsed.operands;
  const script = scripts.length > 0 ? scripts : first === undefined ? [] : [first];
  // The pieces of several -e are lines of one script.
  const doubt = sedScriptDoubt(script.join("\n"));
  return doubt === undefined ? { reads: scripts.length > 0 ? parsed.operands : rest } : why(doubt);
}

const awkSpec: OptionSpec = { short: "F:v:", long: "field-separator= assign= version help", stopAtOperand: true };

function judgeAwk(args: readonly string[]): Judgement {
  const parsed = parseOptions(args, awkSpec);
  if ("unknown" in parsed) return why(`awk ${parsed.unknown} is not known to be harmless`);
  const [script, ...files] = parsed.operands;
  if (script === undefined) return nothing;
  if (awkEffect(script) !== "prints") return why("the awk program may do more than print");
  const assigned = [
    ...parsed.options.flatMap(({ name, value = "" }) => (name === "v" || name === "assign" ? [value] : [])),
    ...files.filter((file) => /^[A-Za-z_]\w*=/.test(file)),
  ];
  const special = assigned.find((text) => !isPlainAwkVariable(text.split("=")[0] ?? ""));
  if (special !== undefined) return why(`awk ${special} sets more than a variable`);
  // `name=value` among the files sets a variable, so a word that looks like one is not a path.
  return { reads: files.filter((file) => !/^[A-Za-z_]\w*=/.test(file)) };
}

const jqSpec: OptionSpec = {
  short: "rcnsSeMCajR",
  long: "raw-output compact-output null-input slurp sort-keys exit-status monochrome-output color-output ascii-output join-output raw-input tab indent= unbuffered seq stream help version",
};

function judgeJq(args: readonly string[]): Judgement {
  const plain: string[] = [];
  for (let index = 0; index < args.length; index++) {
    // --arg NAME VALUE takes two words, unless it is a word of another option, or a file behind `--`.
    if (args[index] !== "--arg" && args[index] !== "--argjson") plain.push(args[index]!);
    else if (plain.at(-1) === "--indent" || plain.includes("--")) return why("jq --arg may be read in two ways");
    else index += 2;
  }
  const parsed = parseOptions(plain, jqSpec);
  if ("unknown" in parsed) return why(`jq ${parsed.unknown} is not known to be harmless`);
  const [filter = ".", ...files] = parsed.operands;
  if (!isPlainJq(filter)) return why("the jq filter may look at more than its input");
  return { reads: files };
}

const rgSpec: OptionSpec = {
  short: "sivwxnNcloe:f:g:t:T:A:B:C:m:M:E:j:d:FSUPHIpqruabL0.r:",
  long: "case-sensitive ignore-case smart-case invert-match word-regexp line-regexp line-number no-line-number count count-matches files files-with-matches files-without-match only-matching regexp= file= glob= iglob= type= type-not= type-list after-context= before-context= context= max-count= max-columns= max-columns-preview encoding= threads= max-depth= maxdepth= max-filesize= fixed-strings multiline multiline-dotall pcre2 with-filename no-filename heading no-heading pretty quiet replace= hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-global unrestricted text binary byte-offset color= colors= column no-column trim json stats sort= sortr= null null-data passthru vimgrep no-messages crlf engine= one-file-system line-buffered block-buffered no-config help version",
};

function judgeRg(args: readonly string[]): Judgement {
  const parsed = parseOptions(args, rgSpec);
  if ("unknown" in parsed) return why(`rg ${parsed.unknown} is not known to be harmless`);
  const names = new Set(parsed.options.map((option) => option.name));
  // With -L, links lead the search out of the workspace.
  if (names.has("L")) return why("rg -L follows links");
  const hasPattern = ["e", "regexp", "f", "file", "files", "type-list"].some((name) => names.has(name));
  const files = parsed.options
    .filter((option) => option.name === "f" || option.name === "file")
    .map((option) => option.value ?? "");
  const paths = (hasPattern ? parsed.operands : parsed.operands.slice(1)).filter((path) => path !== "-");
  const reads = [...files, ...paths];
  // Listing names shows nothing of what is in the files.
  if (names.has("files") || names.has("type-list")) return { reads };
  // A pattern or a file type that matches a hidden file makes the program search that file too.
  const hidden = [".", "hidden", "u", "unrestricted", "g", "glob", "iglob", "t", "type"].some((name) =>
    names.has(name),
  );
  return { reads, below: { folders: paths.length === 0 ? ["."] : paths, hidden } };
}

const testUnary = new Set("-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -n -z".split(" "));
const testBinary = new Set("= == != -nt -ot -ef".split(" "));
const testNumbers = new Set("-eq -ne -lt -le -gt -ge".split(" "));

/**
 * `test -v` and `-R` evaluate subscripts, and numbers must be numbers. It looks at the files it names,
 * but does not read them.
 */
function judgeTest(args: readonly string[]): Judgement {
  for (let index = 0; index < args.length; index++) {
    const arg = args[index]!;
    const next = args[index + 1];
    if (["!", "(", ")", "-a", "-o"].includes(arg)) continue;
    if (next !== undefined && testNumbers.has(next)) {
      if (!/^-?\d+$/.test(arg) || !/^-?\d+$/.test(args[index + 2] ?? ""))
        return why("a test on something that is no number");
      index += 2;
    } else if (next !== undefined && testBinary.has(next)) index += 2;
    else if (testUnary.has(arg)) index++;
    else if (arg.startsWith("-")) return why(`test ${arg} is not known to be harmless`);
  }
  return nothing;
}

function judgeBracket(args: readonly string[]): Judgement {
  return args.at(-1) === "]" ? judgeTest(args.slice(0, -1)) : why("[ without ]");
}

function judgePrintf(args: readonly string[]): Judgement {
  const [format = ""] = args[0] === "--" ? args.slice(1) : args;
  if (args[0]?.startsWith("-") && args[0] !== "--") return why("printf -v sets a variable");
  return plainFormat.test(format) ? nothing : why("a printf format that is not known to be harmless");
}

const dateSpec: OptionSpec = {
  short: "d:uRI?",
  long: "date= utc universal rfc-email rfc-3339= iso-8601? debug help version",
};

function judgeDate(args: readonly string[]): Judgement {
  const parsed = parseOptions(args, dateSpec);
  if ("unknown" in parsed) return why(`date ${parsed.unknown} is not known to be harmless`);
  return parsed.operands.every((operand) => operand.startsWith("+"))
    ? nothing
    : why("date with an operand sets the clock");
}

/** `cd` itself reads nothing, but its target must be a place that may be read. */
function judgeCd(args: readonly string[]): Judgement {
  const operands = args[0] === "--" ? args.slice(1) : args;
  return operands.length === 1 && !operands[0]!.startsWith("-")
    ? { reads: operands }
    : why("cannot tell where cd goes");
}

function judgeCommandV(args: readonly string[]): Judgement {
  return args[0] === "-v" || args[0] === "-V" ? nothing : why("command runs its operand");
}

/** Asking a program for its version, for programs that read nothing of the folder before they answer. */
const versions =
  "node python python3 perl ruby git gcc g++ cc clang make cmake bash jq rg curl docker java javac npm".split(" ");

const shortVersion: ReadonlyMap<string, string> = new Map([
  ["node", "-v"],
  ["npm", "-v"],
  ["python", "-V"],
  ["python3", "-V"],
]);

function judgeVersion(name: string): Judge {
  return (args) =>
    args.length === 1 && (args[0] === "--version" || args[0] === shortVersion.get(name))
      ? nothing
      : why(`${name} is not known to be harmless`);
}

/** Programs that are known here only for printing their version. */
export const versionOnly: ReadonlySet<string> = new Set(versions.filter((name) => !["git", "jq", "rg"].includes(name)));

export const specials: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ...versions.map((name) => [name, judgeVersion(name)] as const),
  ["find", judgeFind],
  ["sed", judgeSed],
  ["awk", judgeAwk],
  ["gawk", judgeAwk],
  ["mawk", judgeAwk],
  ["jq", (args) => (args.length === 1 && args[0] === "--version" ? nothing : judgeJq(args))],
  ["rg", judgeRg],
  ["test", judgeTest],
  ["[", judgeBracket],
  ["echo", () => nothing],
  ["printf", judgePrintf],
  ["date", judgeDate],
  ["cd", judgeCd],
  ["command", judgeCommandV],
  ["git", judgeGit],
]);
