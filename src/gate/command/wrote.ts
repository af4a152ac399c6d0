/** Files that a line writes and then runs. What such a file will contain cannot be known without running the line. */
import { basename } from "node:path";
import { resolveReal, statOf } from "../paths.ts";
import type { Step, Understood } from "./understand.ts";
import { kindOf } from "../run-later.ts";
import { isInterpreter } from "./wrappers.ts";

/**
 * Programs that put a file where they are told, besides redirects. Compilers are not among them,
 * because what they make comes from sources that are there already.
 */
const movers = new Set(
  "cp mv ln link install dd tee tar gtar bsdtar zip unzip cpio rsync sed patch scp sftp curl wget base64 xxd openssl gunzip gzip zstd xz bzip2 7z split csplit objcopy strip mkfifo truncate sponge awk gawk mawk perl python python3 node ruby php".split(
    " ",
  ),
);

/** If the line wrote the source, then what a compiler makes of it is as unknown as the source. */
const compilers = /^((g?cc|[gc]\+\+|clang(\+\+)?|tcc)(-[\d.]+)?|ld|as|rustc|go|javac|ghc|zig|nim|swiftc)$/;

/** Programs that run a file they are given, beside the interpreters. */
const scriptTakers =
  /^(cmake|ctest|ninja|just|task|ant|ansible-playbook|go|java|irb|jshell|gnuplot|octave|swipl|sbcl|clisp|racket|ocaml|nu|xonsh|elvish|tsx|ts-node)$/;

/** Interpreters for which scripts.ts tells the script from its data. */
const ownReading = /^((python|pypy|perl|ruby|php|lua)[\d.]*|node|nodejs|luajit|[gmn]?awk|g?sed)$/;

/** Programs that run code of the project which nobody names: tests, settings in code, modules. */
const projectRunners =
  /^(npx|bunx|pnpx|npm|pnpm|yarn|bun|deno|jest|vitest|mocha|ava|webpack|vite|rollup|gulp|grunt|pytest|py\.test|tox|nox|invoke|inv|fab|scons|waf|snakemake|cargo|go|g?make|cmake|ctest|ninja|rake|bundle|rspec|gradlew?|mvn|ant|sbt|mix|swift|dotnet|phpunit|composer|just|task)$/;

/** Words after which these programs only read code and run none of it. */
const onlyRead = /^(tsc|prettier|oxfmt|oxlint|biome|ls|list|view|pack|version)$/;

const codeFile =
  /\.([cm]?[jt]sx?|py|rb|rs|go|java|kts?|scala|swift|php|p[lm]|lua|mk|gradle|exs?|cs)$|^(SConstruct|wscript|Snakefile)$/;

/** Files that a program runs without being told. */
export const ownFiles: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    "make gmake": "Makefile makefile GNUmakefile",
    "npm npx yarn pnpm bun bunx": "package.json .npmrc .yarnrc.yml .pnpmfile.cjs",
    "pytest py.test tox": "conftest.py pytest.ini setup.cfg tox.ini pyproject.toml",
    "python python3 pip pip3": "sitecustomize.py usercustomize.py setup.py",
    "cargo rustc": "build.rs config.toml Cargo.toml",
    git: "config .gitconfig pre-commit post-checkout post-commit pre-push",
    "rake bundle": "Rakefile Gemfile",
    just: "justfile Justfile",
    "cmake ctest": "CMakeLists.txt",
    ninja: "build.ninja",
    "gradle gradlew": "build.gradle settings.gradle build.gradle.kts",
    direnv: ".envrc",
    "vim vi nvim": ".vimrc .exrc",
    "bash sh": ".bashrc .profile .bash_profile",
    "docker docker-compose": "Dockerfile docker-compose.yml compose.yaml",
  }).flatMap(([names, files]) => names.split(" ").map((name) => [name, files.split(" ")] as const)),
);

/** Whether the line runs a file that it also writes, or may write. */
export function runsWhatItWrites(understood: Understood): boolean {
  const steps = [...understood.steps, ...understood.steps.flatMap((step) => step.possible)];
  const written = understood.redirects.flatMap(({ use, target }) =>
    use === "write" && !/^\/dev\/\w+$/.test(target) ? [target] : [],
  );
  // An interpreter that runs a file of its own was not given code that could write another file.
  const moving = steps.filter(
    (step) =>
      step.risk !== "harmless" &&
      (movers.has(step.name ?? "") || (compilers.test(step.name ?? "") && written.some((path) => names(step, path)))) &&
      (step.code.length === 0 || (step.runs.length === 0 && step.code.some((arg) => /[(;>]/.test(arg)))),
  );
  if (moving.length === 0 && written.length === 0 && !understood.writesBlindly) return false;
  return (
    understood.setsPath ||
    steps.some((step) => written.some((path) => loads(step, path))) ||
    steps.some((step) =>
      filesRun(step).some(
        ({ path, told }) =>
          written.some((target) => basename(target) === basename(path)) ||
          moving.some((mover) => mover !== step && mentions(mover, basename(path))) ||
          (told &&
            (understood.writesBlindly ||
              moving.some((mover) => mover !== step && (compilers.test(mover.name ?? "") || !exists(path, step))))),
      ),
    )
  );
}

/** `told` is true if the line names the file, and false if the program finds the file by itself. */
function filesRun(step: Step): readonly { readonly path: string; readonly told: boolean }[] {
  const [typed] = step.argv;
  const own = ownFiles.get(step.name ?? "") ?? [];
  const program = typed?.includes("/") === true && !step.system ? [typed] : [];
  return [
    ...[...program, ...step.runs].map((path) => ({ path, told: true })),
    ...own.map((path) => ({ path, told: false })),
  ];
}

/** `python3 z` runs z/__main__.py, `node z` and `python3 -m z` a file with an ending, `tclsh` and `gdb -x` any file. */
function loads(step: Step, path: string): boolean {
  const { name = "", argv } = step;
  if (step.risk === "harmless") return false;
  const file = basename(path);
  const isCode = codeFile.test(file) || kindOf(file) !== undefined;
  if (isCode && projectRunners.test(name) && !argv.slice(1, 3).some((arg) => onlyRead.test(arg))) return true;
  if (isCode && /^(python|pypy|node)/.test(name) && argv.some((arg) => /^(-[cm]|--test|--run)$/.test(arg))) return true;
  if (name === "eslint" && kindOf(file) !== undefined) return true;
  if (/^g?make$/.test(name)) return false;
  if (!isInterpreter(name) && !scriptTakers.test(name)) return false;
  const whole = !ownReading.test(name);
  return step.argv.slice(1).some((arg) => {
    const word = arg.replace(/^--?\w[\w-]*=|^-\w(?=\.?[\w/])/, "").replace(/^\.\//, "");
    return (
      word !== "" &&
      ((whole && word.includes(file)) ||
        basename(word) === /^(.+)\.([cm]?[jt]s|json|node|pyc?|rb|p[lm]|lua|php\d?|tcl)$/.exec(file)?.[1] ||
        `/${path}`.includes(`/${word.replace(/\/+$/, "")}/__main__.py`) ||
        `/${path}`.includes(`/${word.replace(/\/+$/, "")}/index.`))
    );
  });
}

function names(step: Step, path: string): boolean {
  return step.argv.slice(1).some((arg) => arg.includes(basename(path)));
}

function mentions(mover: Step, name: string): boolean {
  return mover.found.words
    .slice(1)
    .some(
      ({ value }) =>
        value === undefined || basename(value) === name || (value.includes(name) && !/^[\w./-]*$/.test(value)),
    );
}

function exists(path: string, step: Step): boolean {
  return step.found.cwds.some((cwd) => statOf(resolveReal(path, cwd) ?? "") !== undefined);
}
