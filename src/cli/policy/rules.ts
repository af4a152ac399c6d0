/** The rule files of a user and a project, in the order they count, and where 'always' is written. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { configDir } from "../../base/paths.ts";
import type { Rule } from "../../gate/rules.ts";
import { UsageError } from "../io.ts";
import { isTrusted } from "./trust.ts";

/** Where 'always' is written, and the first file that is read. */
function userRulesFile(env: NodeJS.ProcessEnv): string {
  return join(configDir(env), "rules.toml");
}

/** The user's rules, then the project's if their content is trusted. A file that does not parse stops the start. */
export async function readRules(cwd: string, env: NodeJS.ProcessEnv): Promise<readonly Rule[]> {
  const user = userRulesFile(env);
  const project = join(cwd, ".callgate", "rules.toml");
  const content = existsSync(project) ? readFileSync(project, "utf8") : undefined;
  const own = content !== undefined && isTrusted(project, content) ? content : undefined;
  if (!existsSync(user) && own === undefined) return [];
  // Checking the examples in rules needs the reader of commands, so this is loaded only if there are rules.
  const { loadRules, parseRules, RulesError } = await import("../../gate/rules-file.ts");
  try {
    return [...(await loadRules(user)), ...(own === undefined ? [] : await parseRules(own, project))];
  } catch (error) {
    if (error instanceof RulesError) throw new UsageError(error.message);
    throw error;
  }
}

export function saveAlways(env: NodeJS.ProcessEnv): { readonly file: string; save(rule: Rule): Promise<void> } {
  const file = userRulesFile(env);
  return {
    file,
    async save(rule) {
      const { appendRule } = await import("../../gate/rules-file.ts");
      await appendRule(file, rule);
    },
  };
}
