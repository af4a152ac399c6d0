/**
 * From a question to a person's answer. The answer is bound to the exact call it was given for by a hash,
 * and is remembered for as long as the person said by the keys of what was agreed to.
 */
import { createHash } from "node:crypto";
import { CallError } from "../base/error.ts";
import { stableStringify } from "../base/json.ts";
import { checkOptions, optionsShape } from "../base/shape.ts";
import type { Grant } from "../spec/access.ts";
import { Refusal, Waiting, type Checked, type Ruling } from "../spec/call.ts";
import type { ApprovalAnswer, ApprovalRequest, Rehearse } from "../spec/stages.ts";
import { rememberPaths } from "./command/look.ts";
import { understand } from "./command/understand.ts";
import { contentOf, filesOf } from "./command-files.ts";
import { toBaseGrant } from "./grant.ts";
import { isSecretName, statOf } from "./paths.ts";
import type { GateState } from "./options.ts";
import type { Policy } from "./policy.ts";
import type { Rule } from "./rules.ts";
import { offerAlways, type Suggestion } from "./suggest.ts";
import { rulingsOn } from "./verdict.ts";

export interface Question {
  readonly reason: string;
  readonly commands: readonly (readonly string[])[];
  readonly grant: Grant;
  readonly suggestion: Suggestion | undefined;
  /** Tries the call out, so that what it would change can be shown. */
  readonly rehearse: Rehearse | undefined;
  /** The hash of a question that was answered with yes before this call came. */
  readonly approved: string | undefined;
}

/** Who agreed and why, or the refusal if the call ends here. */
export type Approval =
  | { readonly ruling: Ruling; /** The hash of what the person said yes to. */ readonly hash?: string }
  | { readonly refusal: Refusal };

const maxMessage = 4_000;

export async function seekApproval(
  state: GateState,
  checked: Checked,
  question: Question,
  signal: AbortSignal,
): Promise<Approval> {
  const ruling = rulingsOn(question.commands);
  const policy = rememberPaths(state.policy);
  const keys = memoryKeys(checked, question.grant, policy);
  const known = remembered(state, question, keys);
  if (known !== undefined) return { ruling: known };
  const hash = callHash(checked, question.grant, policy);
  if (question.approved === hash)
    return { ruling: ruling("person", "allow", `approved before it was run; asked because: ${question.reason}`) };
  const answer = await ask(state, checked, question, hash, signal);
  // The answer 'direct' is only offered after a held run, so here it is not an answer.
  if (answer === undefined || answer.answer === "direct")
    return { refusal: nobody(ruling("policy", "ask", question.reason), hash) };
  if (answer.answer === "no" || answer.answer === "stop") {
    const said = wordsOf(answer);
    return {
      refusal: rejection(ruling("person", "deny", `the person said ${answer.answer}${said}`), answer.answer, said),
    };
  }
  // The yes is bound to what was shown: if a link was swapped while the person was reading, the yes is void.
  if (callHash(checked, question.grant, state.policy) !== hash) return { refusal: changed(question) };
  if (answer.answer !== "once")
    await remember(state, checked.id, { answer: answer.answer, rule: question.suggestion?.rule, keys });
  return { ruling: ruling("person", "allow", `approved (${answer.answer}); asked because: ${question.reason}`), hash };
}

/** What a person said with a no, to follow a sentence. */
export function wordsOf({ message = "" }: { readonly message?: string }): string {
  return message === "" ? "" : `: ${message.slice(0, maxMessage)}`;
}

/** The refusal for a call whose files changed after somebody agreed to it. */
export function changed({ commands }: Question): Refusal {
  return new Refusal(
    rulingsOn(commands)("policy", "deny", "it changed while it was being approved"),
    "stale",
    "What the call touches changed while it was being approved.",
    { hint: "Call it again." },
  );
}

/** The ruling, if a person said yes to all of this earlier in the conversation. */
export function remembered({ memory }: GateState, { commands }: Question, keys: readonly string[]): Ruling | undefined {
  if (!keys.every((key) => memory.has(key))) return undefined;
  return rulingsOn(commands)("memory", "allow", "agreed to earlier in this session");
}

function nobody(ruling: Ruling, hash: string): Refusal {
  return new Refusal(ruling, "needs_approval", `Nobody is here to approve it: ${ruling.reason}`, {
    hint: "Do it in a way that needs no approval, or tell the user what you need.",
    data: { hash },
  });
}

function rejection(ruling: Ruling, answer: "no" | "stop", said: string): Refusal {
  return answer === "stop"
    ? new Refusal(ruling, "rejected", `The user stopped the turn${said || "."}`, { data: { stopTurn: true } })
    : new Refusal(ruling, "rejected", `The user said no${said || "."}`, {
        hint: "Do not try the same again; ask what to do instead.",
      });
}

async function ask(
  state: GateState,
  checked: Checked,
  question: Question,
  hash: string,
  signal: AbortSignal,
): Promise<ApprovalAnswer | undefined> {
  if (state.options.approver === undefined) return undefined;
  const request = await toRequest(state, checked, question, hash);
  // A call made by another call cannot be put aside, because the other call is running and waits for it.
  return putQuestion(state, request, signal, { canWait: checked.parent === undefined });
}

/** Asks, and tells what was answered. Undefined if nobody did. Throws `Waiting` if the answer comes later and the call can wait. */
export async function putQuestion(
  { options }: GateState,
  request: ApprovalRequest,
  signal: AbortSignal,
  { canWait }: { readonly canWait: boolean },
): Promise<ApprovalAnswer | undefined> {
  const { approver, emit } = options;
  if (approver === undefined) return undefined;
  const { id } = request.call;
  emit?.({ type: "approval.asked", id, request });
  const given = checkAnswer(await approver.ask(request, signal));
  if (given === "later" && canWait) throw new Waiting(`The call ${id} waits for an answer.`);
  const answer = given === "later" ? undefined : given;
  emit?.({ type: "approval.answered", id, answer });
  if (signal.aborted) throw new CallError("aborted", "The turn was stopped while it waited for an approval.");
  return answer;
}

const answerShape = optionsShape<{ readonly answer: string; readonly keep: unknown; readonly message: unknown }>(
  {
    answer: { oneOf: ["once", "session", "always", "no", "stop", "direct"] satisfies ApprovalAnswer["answer"][] },
    keep: "strings",
    message: "string",
  },
  "answer",
);

/** Something that is not an answer is not a yes. The approver's author has to mend it. */
function checkAnswer(given: ApprovalAnswer | "later" | undefined): ApprovalAnswer | "later" | undefined {
  if (given !== undefined && given !== "later") checkOptions("the approver's answer", given, answerShape);
  return given;
}

/**
 * The question as it is put to a person. The hash is taken before the diff is made, so that it covers
 * what is shown.
 */
export async function toRequest(
  state: GateState,
  checked: Checked,
  question: Question,
  hash: string,
): Promise<ApprovalRequest> {
  const diff = await question.rehearse?.(toBaseGrant(state.policy), isSecretName);
  const always = offerAlways(state.options.always, question.suggestion);
  return {
    call: { id: checked.id, tool: checked.tool.name, input: checked.input },
    reason: question.reason,
    access: checked.access,
    grant: question.grant,
    commands: question.commands,
    hash,
    ...(always === undefined ? {} : { always }),
    ...(diff === undefined ? {} : { diff }),
  };
}

export interface Agreed {
  readonly answer: "session" | "always";
  /** The rule that was shown. */
  readonly rule: Rule | undefined;
  readonly keys: readonly string[];
}

/** 'always' saves the rule that was shown. Without such a rule it lasts as long as the session. */
export async function remember(state: GateState, id: string, { answer, rule, keys }: Agreed): Promise<void> {
  const { always, emit } = state.options;
  if (answer === "always" && rule !== undefined && always !== undefined) {
    await always.save(rule);
    state.book.add(rule);
  }
  if (keys.length === 0) return;
  for (const key of keys) state.memory.add(key);
  emit?.({ type: "approval.remembered", id, keys });
}

/** The same hash for equal values, whatever the order of their keys. */
export function hashOf(value: unknown): string {
  return createHash("sha256").update(stableStringify(value)).digest("hex");
}

/**
 * Covers the call, the grant, and what the call touches with every link followed now. If any of it
 * changes, the yes is void. A file to be changed counts with its content, because its diff was shown;
 * so does every file of the workspace that a command names or runs. `content: false` leaves contents
 * out, for a call that nobody was asked about: there is no yes that they could make void.
 */
export function callHash(
  checked: Checked,
  grant: Grant,
  policy: Policy,
  { content = true }: { readonly content?: boolean } = {},
): string {
  const { access, input, tool } = checked;
  const { read = [], write = [], commands = [] } = access;
  const places = [...read, ...commands.map(({ cwd = "." }) => cwd)];
  const leads = [
    ...places.map((path) => identify(path, policy, false)),
    ...write.map((path) => identify(path, policy, content)),
  ];
  const files = content && commands.length > 0 ? filesOf(commands, policy) : [];
  return hashOf([tool.name, input, access, leads, grant, files]);
}

/**
 * Where a path leads and what kind of thing is there; with `content`, also what it holds. Nothing in
 * it depends on the machine, so that a yes given to one process is valid in another that sees the same
 * files.
 */
function identify(path: string, policy: Policy, content: boolean): readonly (string | number)[] {
  const real = policy.real(path, policy.workspace) ?? "";
  const stats = statOf(real);
  if (stats === undefined) return [real];
  if (content && stats.isFile()) return [real, contentOf(real, stats)];
  return [real, stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other"];
}

/**
 * One key for each thing that was agreed to, so that a later call that needs fewer of them passes too.
 * A command that is understood counts by its words, so blanks and quoting do not matter. An MCP tool
 * counts with its definition, so that a changed tool asks again.
 */
export function memoryKeys(checked: Checked, grant: Grant, policy: Policy): readonly string[] {
  const { access, tool } = checked;
  // For a command, the folders it may write count. A file to be written is a key by itself.
  const roots = access.commands === undefined ? [] : [...grant.write].toSorted();
  const commands = (access.commands ?? []).map((command) => {
    const understood = understand(command, policy);
    const plain = command.typed === undefined && understood.doubts.length === 0 && understood.unclear.length === 0;
    const canonical = plain
      ? {
          argv: understood.steps.map((step) => [step.argv, step.found.env, step.found.cwds]),
          redirects: understood.redirects,
        }
      : { text: command.shell ?? command.argv ?? "", typed: command.typed };
    return {
      command: canonical,
      // A script that has changed since is a different script.
      files: filesOf([command], policy),
      cwd: command.cwd ?? policy.workspace,
      dialect: command.dialect ?? "bash",
      escalation: access.escalation !== undefined,
    };
  });
  const paths = (use: "read" | "write") =>
    (access[use] ?? []).map((path) => ({ [use]: policy.real(path, policy.workspace) ?? path }));
  const hosts = (access.network ?? []).map((host) => ({ host }));
  const things = [...commands, ...paths("read"), ...paths("write"), ...hosts];
  const own =
    things.length === 0
      ? [
          {
            tool: tool.name,
            servers: access.servers,
            definition: hashOf({
              input: toPlain(tool.input),
              description: typeof tool.description === "string" ? tool.description : "",
            }),
          },
        ]
      : [...things, ...(access.servers ?? []).map((server) => ({ server }))];
  return own.map((thing) =>
    hashOf({
      thing,
      grant: { ...grant, write: roots },
      tool: things.length === 0 ? tool.name : undefined,
    }),
  );
}

function toPlain(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value ?? null));
  } catch {
    // A schema object that cannot be written as JSON is told apart only by its tool's name.
    return null;
  }
}
