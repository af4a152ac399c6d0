/**
 * The one door every call of every tool goes through before its handler: hooks, then policy, then a
 * person. `gate/` decides from what a call says it will touch; it knows no tool, no wire, no sandbox
 * and runs nothing of the call itself. No answer is a no.
 */
import { homedir } from "node:os";
import { CallError } from "../base/error.ts";
import { stableStringify } from "../base/json.ts";
import type { Denial, Grant, NetworkGrant } from "../spec/access.ts";
import type { Asked, Checked, Ended, Permitted, Ruling } from "../spec/call.ts";
import type {
  ApprovalAnswer,
  ApprovalRequest,
  Approver,
  Confinement,
  Emit,
  Gate,
  PolicySettings,
  Rewritten,
} from "../spec/stages.ts";
import { callHash, createMemory, memoryKeys, type Memory } from "./approval.ts";
import { toBaseGrant, toGrant, widenGrant } from "./grant.ts";
import { runAfter, runBefore, type Hook } from "./hooks.ts";
import { defaultMask, defaultProtect, resolveReal } from "./paths.ts";
import { decideAccess, type CommandVerdict, type Policy } from "./policy.ts";
import { compileRules, joinRules, type Rule } from "./rules.ts";
import { describeRule, suggestRule, type Suggestion } from "./suggest.ts";

export interface GateOptions {
  readonly settings: PolicySettings;
  readonly workspace: string;
  readonly extraWritableRoots?: readonly string[];
  /** Folders outside the workspace that may be read without a question (kept outputs, skills). */
  readonly readableRoots?: readonly string[];
  readonly protect?: readonly string[];
  readonly mask?: readonly string[];
  readonly network?: NetworkGrant;
  readonly rules?: readonly Rule[];
  /** Left out: nobody can be asked, and what would need it ends as needs_approval. */
  readonly approver?: Approver;
  readonly hooks?: readonly Hook[];
  /** What holds commands inside their grant on this machine; a function is asked once, when the first command comes. */
  readonly confinement: Confinement | (() => Promise<Confinement>);
  readonly emit?: Emit;
  readonly memory?: Memory;
  /** Where 'always' is written. Left out: 'always' is not offered. */
  readonly always?: { readonly file: string; save(rule: Rule): Promise<void> };
  /** Told every decision, with who made it and why (audit log). */
  readonly record?: (entry: GateRecord) => void | Promise<void>;
  /** A diff to show for a call that changes files. */
  readonly preview?: (checked: Checked) => Promise<string | undefined>;
  readonly home?: string;
}

export interface GateRecord {
  readonly call: string;
  readonly tool: string;
  readonly hash: string;
  readonly ruling: Ruling;
  readonly outcome: "permitted" | "refused";
  readonly grant?: Grant;
}

const maxRewrites = 8;

export function createPolicy(options: Omit<GateOptions, "emit" | "approver" | "hooks" | "memory">): Policy {
  const home = options.home ?? homedir();
  const workspace = resolveReal(options.workspace, "/") ?? options.workspace;
  const real = (path: string) => resolveReal(path, workspace) ?? path;
  const { sandbox } = options.settings;
  return {
    settings: options.settings,
    workspace,
    home,
    writable:
      sandbox === "full-access"
        ? ["/"]
        : sandbox === "read-only"
          ? []
          : [workspace, ...(options.extraWritableRoots ?? []).map(real)],
    readable: [...(options.readableRoots ?? []), ...(options.extraWritableRoots ?? [])].map(real),
    protect: options.protect ?? defaultProtect,
    mask: (options.mask ?? defaultMask(home)).map(real),
    network: sandbox === "full-access" ? "on" : (options.network ?? "off"),
    rules: compileRules(options.rules ?? []),
    // Until it has been looked at, a sandbox is taken to be there: it is looked at before the first command is judged.
    confines: (typeof options.confinement === "function" || options.confinement.available) && sandbox !== "full-access",
  };
}

export function createGate(options: GateOptions): Gate {
  let policy = createPolicy(options);
  const memory = options.memory ?? createMemory();
  const hooks = options.hooks ?? [];
  const rewrites = new Map<string, number>();
  const widened = new Set<string>();
  let looked = false;

  async function pass(checked: Checked, signal: AbortSignal): Promise<Permitted | Rewritten> {
    const rewritten = await applyHooks(checked, signal);
    if (rewritten !== undefined) return { rewritten };
    if (checked.access.commands !== undefined) await lookAtConfinement();
    const verdict = decideAccess(toCall(checked), policy);
    const { commands, decision } = verdict;
    if (decision === "deny")
      return refuse(
        checked,
        toRuling(verdict),
        new CallError("denied", `Not permitted: ${verdict.reason}`, { hint: denyHint(verdict) }),
      );
    if (decision === "allow")
      return permit(checked, toGrant(checked.access, policy, verdict.rule !== undefined), toRuling(verdict));
    const grant = toAgreedGrant(checked);
    return agree(
      checked,
      grant,
      { reason: verdict.reason, commands, suggestion: suggestRule(toCall(checked), policy) },
      signal,
    );
  }

  async function lookAtConfinement(): Promise<void> {
    if (looked || typeof options.confinement !== "function" || options.settings.sandbox === "full-access") return;
    const { available } = await options.confinement();
    policy = { ...policy, confines: available };
    looked = true;
  }

  /** What a yes would open. Where nothing can confine a command, a yes to it is a yes without a sandbox. */
  function toAgreedGrant(checked: Checked): Grant {
    return toGrant(checked.access, policy, true);
  }

  /** Undefined where nobody may or can be asked: the call then ends with the output it had. */
  async function widen(permitted: Permitted, denied: Denial, signal: AbortSignal): Promise<Permitted | undefined> {
    const { approval } = policy.settings;
    if (approval === "never" || approval === "disabled" || options.approver === undefined) return undefined;
    if (permitted.tool.repeatable !== true || widened.has(permitted.id)) return undefined;
    widened.add(permitted.id);
    const grant = widenGrant(permitted.grant, denied);
    const reason = `The sandbox stopped it (${denied.what}${denied.target === undefined ? "" : ` ${denied.target}`}: ${denied.reason}). Run it again with more?`;
    return agree(
      permitted,
      grant,
      { reason, commands: permitted.ruling.commands ?? [], suggestion: undefined },
      signal,
    );
  }

  async function agree(checked: Checked, grant: Grant, question: Question, signal: AbortSignal): Promise<Permitted> {
    const ruling = (by: Ruling["by"], decision: Ruling["decision"], reason: string): Ruling => ({
      decision,
      reason,
      by,
      commands: question.commands,
    });
    const keys = memoryKeys(checked, grant, policy);
    if (keys.every((key) => memory.has(key)))
      return permit(checked, grant, ruling("memory", "allow", "agreed to earlier in this session"));
    const hash = callHash(checked, grant, policy);
    const answer = await askPerson(checked, grant, question, hash, signal);
    if (answer === undefined) {
      return refuse(
        checked,
        ruling("policy", "ask", question.reason),
        new CallError("needs_approval", `Nobody is here to approve it: ${question.reason}`, {
          hint: "Do it in a way that needs no approval, or tell the user what you need.",
          data: { hash },
        }),
      );
    }
    if (answer.answer === "no" || answer.answer === "stop") {
      const said = answer.message === undefined ? "" : `: ${answer.message.slice(0, 4_000)}`;
      const stop = answer.answer === "stop";
      return refuse(
        checked,
        ruling("person", "deny", `the person said ${answer.answer}${said}`),
        new CallError(
          "rejected",
          `The user said no${said}`,
          stop ? { data: { stopTurn: true } } : { hint: "Do not try the same again; ask what to do instead." },
        ),
      );
    }
    // Bound to what was shown: a link swapped while the person was reading voids the yes.
    if (callHash(checked, grant, policy) !== hash)
      return refuse(
        checked,
        ruling("policy", "deny", "it changed while it was being approved"),
        new CallError("stale", "What the call touches changed while it was being approved.", {
          hint: "Call it again.",
        }),
      );
    await remember(answer.answer, keys, question.suggestion);
    return permit(
      checked,
      grant,
      ruling("person", "allow", `approved (${answer.answer}); asked because: ${question.reason}`),
    );
  }

  async function askPerson(
    checked: Checked,
    grant: Grant,
    question: Question,
    hash: string,
    signal: AbortSignal,
  ): Promise<ApprovalAnswer | undefined> {
    const { approver, always, preview } = options;
    if (approver === undefined) return undefined;
    const diff = await preview?.(checked);
    const { suggestion } = question;
    const request: ApprovalRequest = {
      call: { id: checked.id, tool: checked.tool.name, input: checked.input },
      reason: question.reason,
      access: checked.access,
      grant,
      commands: question.commands,
      hash,
      ...(suggestion === undefined || always === undefined
        ? {}
        : { always: { rule: describeRule(suggestion.rule), alsoAllows: suggestion.alsoAllows, file: always.file } }),
      ...(diff === undefined ? {} : { diff }),
    };
    options.emit?.({ type: "approval.asked", id: checked.id, request });
    const answer = await approver.ask(request, signal);
    options.emit?.({ type: "approval.answered", id: checked.id, answer });
    if (signal.aborted) throw new CallError("aborted", "The turn was stopped while it waited for an approval.");
    return answer;
  }

  async function remember(
    answer: "once" | "session" | "always",
    keys: readonly string[],
    suggestion: Suggestion | undefined,
  ): Promise<void> {
    if (answer === "once") return;
    if (answer === "always" && suggestion !== undefined && options.always !== undefined) {
      await options.always.save(suggestion.rule);
      policy = { ...policy, rules: joinRules(policy.rules.rules, [suggestion.rule]) };
    }
    for (const key of keys) memory.add(key);
  }

  async function applyHooks(checked: Checked, signal: AbortSignal): Promise<Asked | undefined> {
    if (hooks.length === 0) return undefined;
    const answer = await runBefore(hooks, { id: checked.id, tool: checked.tool.name, input: checked.input }, signal);
    if (answer === undefined) return undefined;
    const ruling: Ruling = {
      decision: "deny",
      by: "hook",
      reason: "block" in answer ? answer.block : "a hook keeps rewriting the call",
    };
    if ("block" in answer)
      return refuse(checked, ruling, new CallError("denied", `Blocked by a hook: ${answer.block}`));
    if (stableStringify(answer.input) === stableStringify(checked.input)) return undefined;
    const count = (rewrites.get(checked.id) ?? 0) + 1;
    rewrites.set(checked.id, count);
    if (count > maxRewrites)
      return refuse(checked, ruling, new CallError("denied", "A hook keeps rewriting the call."));
    return toAsked(
      checked,
      typeof answer.input === "string" && checked.kind === "custom" ? answer.input : JSON.stringify(answer.input),
    );
  }

  async function permit(checked: Checked, grant: Grant, ruling: Ruling): Promise<Permitted> {
    rewrites.delete(checked.id);
    await options.record?.({
      call: checked.id,
      tool: checked.tool.name,
      hash: callHash(checked, grant, policy),
      ruling,
      outcome: "permitted",
      grant,
    });
    return { ...checked, grant, ruling };
  }

  async function refuse(checked: Checked, ruling: Ruling, error: CallError): Promise<never> {
    rewrites.delete(checked.id);
    await options.record?.({
      call: checked.id,
      tool: checked.tool.name,
      hash: callHash(checked, toBaseGrant(policy), policy),
      ruling,
      outcome: "refused",
    });
    throw error;
  }

  async function after(ended: Ended, signal: AbortSignal): Promise<Ended> {
    widened.delete(ended.id);
    rewrites.delete(ended.id);
    if (hooks.length === 0 || ended.tool === undefined) return ended;
    const content = await runAfter(
      hooks,
      { id: ended.id, tool: ended.tool, input: ended.input ?? null, ok: ended.ok, content: ended.content },
      signal,
    );
    return content === ended.content ? ended : { ...ended, content };
  }

  return { pass, widen, after, baseGrant: () => toBaseGrant(policy) };
}

interface Question {
  readonly reason: string;
  readonly commands: readonly (readonly string[])[];
  readonly suggestion: Suggestion | undefined;
}

function toCall(checked: Checked) {
  return { tool: checked.tool.name, access: checked.access, mutates: checked.mutates };
}

function toRuling(verdict: CommandVerdict): Ruling {
  return {
    decision: verdict.decision,
    reason: verdict.reason,
    by: verdict.rule === undefined ? "policy" : "rule",
    ...(verdict.rule === undefined ? {} : { rule: verdict.rule }),
    ...(verdict.commands.length === 0 ? {} : { commands: verdict.commands }),
  };
}

function denyHint(verdict: CommandVerdict): string {
  if (verdict.rule !== undefined)
    return "A rule of the user forbids it, in every spelling. Do it another way, or ask the user to change the rule.";
  return "Nobody is asked in this approval mode. Use a command that only looks, stay inside the workspace, or tell the user what you need and why.";
}

function toAsked(checked: Checked, text: string): Asked {
  const { id, name, namespace, kind, untyped, askedAt } = checked;
  return {
    id,
    name,
    kind,
    arguments: text,
    askedAt,
    ...(namespace === undefined ? {} : { namespace }),
    ...(untyped === undefined ? {} : { untyped: false }),
  };
}
