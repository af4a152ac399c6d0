/**
 * Decides allow, ask or deny, and why: rules first, then the table of modes, and the strictest decision
 * over everything a call touches. It looks at the file system, but runs nothing and asks nobody.
 */
import { extend } from "../base/extend.ts";
import type { Access, Command, ServerUse } from "../spec/access.ts";
import { foreignDenials, lineDenials, zshDenials, type Match } from "./command/deny.ts";
import { needsNetwork, talksToNetwork } from "./command/danger.ts";
import { mayRead } from "./command/look.ts";
import { matchStep } from "./command/match.ts";
import { understand, type Step, type Understood } from "./command/understand.ts";
import type { Policy } from "./policy-type.ts";
import { findProtected, isHarmlessDevice, isInside, isInsideAny, isSecretName, writtenPath } from "./paths.ts";
import { pathWords, reachesOut } from "./reach.ts";
import { findLater } from "./run-later.ts";
import { matchHost, matchMcp, matchName, matchPath, ruleName, type Rule } from "./rules.ts";
import { readTyped } from "./typed.ts";
import {
  isSandboxed,
  modeVerdict,
  refuseToAsk,
  ruleVerdict,
  strictest,
  withRules,
  type CommandVerdict,
  type Verdict,
} from "./verdict.ts";

export type { Policy } from "./policy-type.ts";
export type { CommandVerdict, Verdict } from "./verdict.ts";

/** What the policy has to know about a call. */
export interface CallToDecide {
  readonly tool: string;
  readonly access: Access;
  readonly mutates: boolean;
  /** Nothing marked it as a call, so it may be a quotation. */
  readonly markerless?: boolean;
}

/** What happens to one command: it is allowed, asked about or denied, and why. */
export function decideCommand(command: Command, policy: Policy): CommandVerdict {
  if (command.typed !== undefined) return decideTyped(command, command.typed, policy);
  const understood = understand(command, policy);
  const verdict = refuseToAsk(strictest(commandVerdicts(command, understood, policy)), policy.settings);
  const commands =
    command.dialect === "powershell" ? [(command.shell ?? "").split(/\s+/)] : understood.steps.map((step) => step.argv);
  return extend(verdict, { commands, sandboxed: isSandboxed(policy) });
}

/**
 * If a shell reads it, it is judged as a command line. Otherwise it gets what was permitted when the
 * process started, with the note that nobody understands it.
 */
function decideTyped(command: Command, started: readonly string[], policy: Policy): CommandVerdict {
  const { line, doubt, denials } = readTyped(command, policy.rules);
  const read = line ?? { argv: started, ...(command.cwd === undefined ? {} : { cwd: command.cwd }) };
  const verdicts = [
    modeVerdict("other", policy, doubt),
    ...commandVerdicts(read, understand(read, policy), policy),
    ...denials.map(matchVerdict),
  ];
  const verdict = refuseToAsk(strictest(verdicts), policy.settings);
  const commands = [[...started, "⟵", command.shell ?? ""]];
  return extend(verdict, { commands, sandboxed: isSandboxed(policy) });
}

/** What happens to a call, judged by everything it says it touches. */
export function decideAccess(call: CallToDecide, policy: Policy): CommandVerdict {
  const { access } = call;
  const commands = (access.commands ?? []).map((command) => decideCommand(command, policy));
  const touched = [
    ...commands,
    ...(access.read ?? []).map((path) => readVerdict(path, policy.workspace, policy)),
    ...(access.write ?? []).map((path) => writeVerdict(path, policy.workspace, policy)),
    ...(access.network ?? []).map((host) => networkVerdict(host, policy)),
    // Without a sandbox there is nothing to leave.
    ...(access.escalation === undefined || policy.settings.sandbox === "full-access"
      ? []
      : [modeVerdict("escalation", policy, "the model asks to run it outside the sandbox")]),
  ];
  const toolRules = policy.rules.tools.filter((rule) => matchName(call.tool, rule.tool ?? ""));
  const allowed = toolRules.some((rule) => rule.decision === "allow");
  const remote = (access.servers ?? []).map((use) => serverVerdict(use, call, policy, allowed));
  const verdicts = [
    ...toolRules.map(ruleVerdict),
    ...remote,
    ...(allowed ? touched.map(forgive) : touched),
    ...(allowed || remote.length > 0 || statesItsChanges(call, touched.length > 0) ? [] : [ownVerdict(call, policy)]),
    ...(call.markerless === true && commands.length > 0 ? [quoted] : []),
  ];
  return extend(refuseToAsk(strictest(verdicts), policy.settings), {
    commands: commands.flatMap((verdict) => verdict.commands),
    sandboxed: isSandboxed(policy),
  });
}

/** No rule applies to a command that a model may only have quoted. */
const quoted: Verdict = {
  decision: "ask",
  reason: "nothing in the answer marks it as a call: it may be a quotation",
  risk: "other",
};

/** A rule for the tool settles what is merely unknown. Danger, escalation and the decisions of other rules stay. */
function forgive(verdict: Verdict): Verdict {
  return verdict.rule === undefined && verdict.risk === "other" && verdict.decision === "ask"
    ? { ...verdict, decision: "allow", reason: "a rule allows the tool" }
    : verdict;
}

/** Whether the access is complete: a call that changes something has to state a change, and not only what it reads. */
function statesItsChanges({ access, mutates }: CallToDecide, touches: boolean): boolean {
  if (!mutates) return touches;
  const changes = [access.write, access.commands, access.network].some((list) => (list?.length ?? 0) > 0);
  return changes || access.escalation !== undefined;
}

/** A call that states no change: harmless if its tool says so; otherwise unknown, and nothing confines it. */
function ownVerdict(call: CallToDecide, policy: Policy): Verdict {
  if (!call.mutates) return modeVerdict("harmless", policy, "it changes nothing");
  return unheldVerdict(`${call.tool} changes something and does not say what`, policy);
}

/** What happens on an MCP server is judged by the rules for that server, whichever tool calls it. */
function serverVerdict(use: ServerUse, call: CallToDecide, policy: Policy, allowed: boolean): Verdict {
  const name = `${use.server}/${use.name}`;
  const rules = policy.rules.mcp.filter((rule) => matchMcp(name, rule.mcp ?? "") && !rule.except?.includes(name));
  return withRules(rules, () =>
    allowed ? modeVerdict("harmless", policy, "a rule allows the tool") : serverByMode(name, call.mutates, policy),
  );
}

/**
 * That a server's tool only reads is the server's own claim. It does not count in a mode in which only known
 * facts do.
 */
function serverByMode(name: string, mutates: boolean, policy: Policy): Verdict {
  const { approval } = policy.settings;
  if (!mutates && approval !== "unless-trusted" && approval !== "disabled")
    return modeVerdict("harmless", policy, "it changes nothing");
  return unheldVerdict(`${name} runs on an MCP server, outside every sandbox`, policy);
}

/**
 * For what none of our sandboxes can confine. Whoever chose 'auto' wants such a call to run: a sandbox that
 * is named beside 'auto' is meant for commands only.
 */
function unheldVerdict(what: string, policy: Policy): Verdict {
  if (policy.settings.approval === "auto")
    return { decision: "allow", reason: `${what}; approval 'auto' runs whatever no rule denies`, risk: "other" };
  return modeVerdict("other", policy, what, false);
}

function commandVerdicts(command: Command, understood: Understood, policy: Policy): readonly Verdict[] {
  const { dialect, shell = "" } = command;
  const { rules } = policy;
  const foreign =
    dialect === "powershell"
      ? foreignDenials(shell, rules)
      : [...lineDenials(understood, rules), ...(dialect === "zsh" ? zshDenials(shell, rules) : [])];
  return [
    ...foreign.map(matchVerdict),
    ...understood.unclear.map((text) => modeVerdict("dangerous", policy, text)),
    ...understood.doubts.map((text) => modeVerdict("other", policy, text)),
    ...understood.steps.flatMap((step) => stepVerdicts(step, policy)),
    ...understood.redirects.flatMap((redirect) => redirectVerdicts(redirect, policy)),
  ];
}

function stepVerdicts(step: Step, policy: Policy): readonly Verdict[] {
  const matched = matchStep(step, policy.rules).map(matchVerdict);
  const paths = pathWords(step).flatMap((path) =>
    step.found.cwds.flatMap((cwd) =>
      pathRules(path, cwd, undefined, policy).filter((rule) => rule.decision !== "allow"),
    ),
  );
  const settled = matched.some((verdict) => verdict.decision === "allow") && !reachesOut(step, policy);
  return [
    ...matched.filter((verdict) => settled || verdict.decision !== "allow"),
    ...paths.map(ruleVerdict),
    ...(settled ? [] : [modeVerdict(step.risk, policy, withNetwork(step, policy))]),
  ];
}

/** The reason also says if the command needs a network that it does not have, because then it could only fail. */
function withNetwork({ argv, reason }: Step, policy: Policy): string {
  if (policy.network !== "off" || !isSandboxed(policy) || !needsNetwork(argv)) return reason;
  return reason.endsWith(talksToNetwork) ? `${reason}, which is off` : `${reason}; it needs the network, which is off`;
}

function redirectVerdicts(redirect: Understood["redirects"][number], policy: Policy): readonly Verdict[] {
  const { target, use, cwds } = redirect;
  if (isHarmlessDevice(target)) return [];
  if (/^\/dev\/(tcp|udp)\//.test(target))
    return [modeVerdict("dangerous", policy, `${target} is a network connection`)];
  const rules = cwds.flatMap((cwd) => pathRules(target, cwd, use, policy));
  const known = cwds.length > 0;
  const spoken = known ? rules.map(ruleVerdict) : [];
  if (spoken.some((verdict) => verdict.decision === "allow")) return spoken;
  if (use === "read" && known && cwds.every((cwd) => mayRead(target, cwd, policy))) {
    const secret = cwds.some((cwd) => isSecretName(target) || isSecretName(policy.real(target, cwd) ?? target));
    return secret ? [...spoken, modeVerdict("other", policy, `${target} looks like a file with secrets`)] : spoken;
  }
  const later = use === "write" ? runsLater(target, cwds, policy) : undefined;
  if (later !== undefined)
    return [...spoken, modeVerdict("dangerous", policy, `it writes ${target}, which runs later (${later})`)];
  return [...spoken, modeVerdict("other", policy, use === "write" ? `it writes ${target}` : `it reads ${target}`)];
}

function runsLater(target: string, cwds: readonly string[], policy: Policy): string | undefined {
  const roots = [policy.workspace, ...policy.writable];
  return cwds
    .map(
      (cwd) =>
        findProtected(policy.real(target, cwd) ?? target, roots, policy.protect) ?? findLater(target, cwd, policy),
    )
    .find((name) => name !== undefined);
}

/** A file a tool reads itself. Outside the workspace nothing but the question stands between it and the file. */
function readVerdict(path: string, cwd: string, policy: Policy): Verdict {
  const rules = pathRules(path, cwd, "read", policy);
  return withRules(rules, () => readByMode(path, cwd, policy));
}

function readByMode(path: string, cwd: string, policy: Policy): Verdict {
  if (mayRead(path, cwd, policy)) {
    const secret = isSecretName(path) || isSecretName(policy.real(path, cwd) ?? path);
    return modeVerdict(secret ? "other" : "harmless", policy, `it reads ${path}`, true);
  }
  const open = policy.settings.sandbox === "full-access" && !isInsideAny(policy.real(path, cwd) ?? "/", policy.mask);
  return modeVerdict(open ? "other" : "escalation", policy, `${path} is outside the workspace or masked`, false);
}

function writeVerdict(path: string, cwd: string, policy: Policy): Verdict {
  const rules = pathRules(path, cwd, "write", policy);
  return withRules(rules, () => writeByMode(path, cwd, policy));
}

function writeByMode(path: string, cwd: string, policy: Policy): Verdict {
  const real = policy.real(path, cwd);
  if (real === undefined) return modeVerdict("escalation", policy, "the path cannot be resolved");
  const plain = writtenPath(path, cwd);
  // Most files of the workspace are reached without a link, and for them a second search would find the same name.
  const name =
    findProtected(plain, [policy.workspace], policy.protect) ??
    (plain === real && isInside(real, policy.workspace)
      ? undefined
      : findProtected(real, [policy.workspace, ...policy.writable], policy.protect));
  if (name !== undefined) return modeVerdict("escalation", policy, `${path} belongs to ${name}, which is protected`);
  const later = findLater(path, cwd, policy);
  if (later !== undefined)
    return modeVerdict("dangerous", policy, `${path} runs later, outside the sandbox (${later})`);
  if (isInsideAny(real, policy.mask)) return modeVerdict("escalation", policy, `${path} is masked`);
  if (isInsideAny(real, policy.writable)) return modeVerdict("other", policy, `it changes ${path}`, true);
  return modeVerdict("escalation", policy, `${path} is outside the folders that may be changed`);
}

function networkVerdict(host: string, policy: Policy): Verdict {
  const rules = policy.rules.hosts.filter((rule) => matchHost(host, rule.host ?? ""));
  return withRules(rules, () => networkByMode(host, policy));
}

function networkByMode(host: string, policy: Policy): Verdict {
  const { network } = policy;
  const granted = network === "on" || (network !== "off" && network.some((pattern) => matchHost(host, pattern)));
  return modeVerdict(
    granted ? "other" : "escalation",
    policy,
    granted ? `it contacts ${host}` : `it contacts ${host}, and the network is not open to it`,
    true,
  );
}

function pathRules(path: string, cwd: string, use: "read" | "write" | undefined, policy: Policy): readonly Rule[] {
  if (policy.rules.paths.length === 0) return [];
  const real = policy.real(path, cwd);
  const plain = writtenPath(path, cwd);
  return policy.rules.paths.filter(
    (rule) =>
      (use === undefined || rule.access === undefined || rule.access === use) &&
      // An allow rule is matched against where the path leads; a deny rule also against how it is written.
      ((real !== undefined && matchPath(real, rule.path ?? "", policy.workspace)) ||
        (rule.decision !== "allow" && matchPath(plain, rule.path ?? "", policy.workspace))),
  );
}

function matchVerdict({ rule, unsure }: Match): Verdict {
  const verdict = ruleVerdict(rule);
  return unsure
    ? {
        ...verdict,
        reason: `only running it tells what it starts, and a rule denies some commands (${ruleName(rule)})`,
      }
    : verdict;
}
