/** What the page shows of the tools and rules: the same values that `tools`, `policy check` and the rules files have. */
import { defined, type Json, type JsonObject } from "../../base/json.ts";
import type { ApprovalName, SandboxName } from "../../gate/modes.ts";
import { decideCommand } from "../../gate/policy.ts";
import { createEngine } from "../../router/engine.ts";
import type { Look } from "../../serve/index.ts";
import type { Config } from "../config/config.ts";
import { engineOptions } from "../engine-options.ts";
import { chooseProfile, offerToModel } from "../offered-tools.ts";
import { findConfinement, toPolicy } from "../policy/subject.ts";
import { readRules } from "../policy/rules.ts";

export function createLook(config: Config, cwd: string, env: NodeJS.ProcessEnv): Look {
  // This is plain data, although its types do not say so. It is written as JSON.
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as Json;
  return {
    async tools() {
      const profile = await chooseProfile(config, config.model);
      const engine = createEngine(await engineOptions(config, cwd, env, { profile }));
      try {
        return plain({ tools: offerToModel(engine, profile, config, config.provider ?? "custom")() });
      } finally {
        await engine.close();
      }
    },
    rules: async () => plain({ rules: await readRules(cwd, env) }),
    async checkPolicy({ shell, argv }: JsonObject) {
      const [rules, confinement] = await Promise.all([readRules(cwd, env), findConfinement()]);
      const { approval, sandbox } = config;
      const policy = toPolicy({ workspace: cwd, config, ...modes(approval, sandbox) }, rules, confinement);
      const words = Array.isArray(argv) ? argv.map(String) : undefined;
      const { decision, reason, rule, commands } = decideCommand(
        words === undefined ? { shell: String(shell), cwd } : { argv: words, cwd },
        policy,
      );
      return plain({ decision, reason, commands, rule: rule ?? null });
    },
  };
}

/** The settings' own words, checked when they were read. */
function modes(approval: string | undefined, sandbox: string | undefined) {
  return defined({ approval: approval as ApprovalName | undefined, sandbox: sandbox as SandboxName | undefined });
}
