/** Whether a command that a rule allows by name reaches beyond the workspace. */
import { notWrappers } from "./command/handed.ts";
import { activeHook, repositoryDoubt } from "./command/git-config.ts";
import { mayRead } from "./command/look.ts";
import type { Step } from "./command/understand.ts";
import { isInterpreter, isShell } from "./command/wrappers.ts";
import { findProtected, isHarmlessDevice, resolveReal, statOf } from "./paths.ts";
import type { Policy } from "./policy-type.ts";
import { matchPath } from "./rules.ts";

/**
 * An allow rule covers what a command does inside the workspace. It does not cover paths elsewhere
 * (wherever they stand in a word), protected files, or a program of the workspace passed as an option.
 */
export function reachesOut(step: Step, policy: Policy): boolean {
  return step.found.cwds.some((cwd) => {
    const outside = (path: string) => {
      if (isHarmlessDevice(path)) return false;
      const real = resolveReal(path, cwd);
      if (real === undefined || (!mayRead(path, cwd, policy) && !isAllowedPath(real, policy))) return true;
      return (
        step.risk !== "harmless" &&
        findProtected(real, [policy.workspace, ...policy.writable], policy.protect) !== undefined
      );
    };
    if (step.name === "git" && step.risk !== "harmless" && (repositoryDoubt(cwd) ?? activeHook(cwd)) !== undefined)
      return true;
    return (
      pathWords(step).some(outside) ||
      (step.risk !== "harmless" &&
        (innerPaths(step).some((path) => outside(path) || isProgram(path, cwd)) || optionPrograms(step, cwd)))
    );
  });
}

/** Paths inside words: `-o ProxyCommand=touch /x`, `type=bind,src=/`. */
function innerPaths(step: Step): readonly string[] {
  return step.argv
    .slice(1, 500)
    .filter((arg) => !arg.includes("://"))
    .flatMap((arg) => arg.slice(0, 4_096).split(/[\s=:,;'"`()<>|&@{}[\]]+/))
    .filter((token) => /^[/~]|(^|\/)\.\.(\/|$)/.test(token))
    .map((token) => token.replace(/^~/, "/~"));
}

/** If the value of an option is an executable file of the workspace, it is a program to be run. */
function optionPrograms(step: Step, cwd: string): boolean {
  return step.argv.some((arg, index) => {
    if (index === 0) return false;
    const glued = arg.includes("=")
      ? arg.slice(arg.indexOf("=") + 1)
      : arg.startsWith("-")
        ? arg.replace(/^-\w/, "")
        : undefined;
    const after = step.argv[index - 1]?.startsWith("-") ? arg : undefined;
    // A known program that takes files reads them; an unknown one may run them.
    const operand = arg.includes("/") && !takesFiles(step.name ?? "") ? arg : undefined;
    return [glued, after, operand].some((path) => path !== undefined && path !== "" && isProgram(path, cwd));
  });
}

function takesFiles(name: string): boolean {
  return notWrappers.has(name) || isInterpreter(name) || isShell(name);
}

function isProgram(path: string, cwd: string): boolean {
  const real = resolveReal(path.split(/\s/)[0] ?? path, cwd);
  const stats = real === undefined ? undefined : statOf(real);
  return stats !== undefined && stats.isFile() && (stats.mode & 0o111) !== 0;
}

function isAllowedPath(real: string, policy: Policy): boolean {
  return policy.rules.paths.some(
    (rule) => rule.decision === "allow" && matchPath(real, rule.path ?? "", policy.workspace),
  );
}

/** The parts of a step's words that may be paths: operands, `--option=path`, `of=path`, `-opath`. */
export function pathWords(step: Step): readonly string[] {
  return step.argv
    .slice(1, 2_000)
    .flatMap((arg) => {
      if (arg.length > 4_096) return [];
      if (!arg.startsWith("-"))
        return arg.includes("=") ? [arg, arg.slice(arg.indexOf("=") + 1)] : [arg.replace(/^@/, "")];
      if (arg.includes("=")) return [arg.slice(arg.indexOf("=") + 1)];
      const slash = arg.search(/[/~.]/);
      return slash > 0 ? [arg.slice(slash)] : [];
    })
    .filter((path) => path !== "" && !path.includes("://"));
}
