/**
 * What Node and native/launcher.c say to each other.
 *
 * A frame is its length (4 bytes, of what follows), a letter, the command's number (4 bytes) and a body.
 * To the launcher: S start, P prepare a sandbox, I input, E end of input, G signal, K kill, R resize,
 * M more output, Q is it waiting. From it: o/e output, d dropped, p programs started, x ended, f failed, q the answer.
 * S and P carry fields: a letter, a length (4 bytes) and that many bytes. All numbers little endian.
 */
import { constants } from "node:os";
import { defined } from "../../base/json.ts";
import type { LimitName, StartedProgram, StartedPrograms } from "../../spec/capability.ts";
import type { ChildEnd, Confined, Sink, StartRules } from "./child.ts";
import { cannotRun, sandboxWords, StartError } from "./child.ts";
import { createFields, cString, pack } from "./launcher-fields.ts";
import type { Fields } from "./launcher-fields.ts";

export type Frame = { readonly type: string; readonly id: number; readonly body: Buffer };

const headBytes = 9;

export function encodeFrame(type: string, id: number, body: Uint8Array = noBytes): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + body.length);
  frame.writeUInt32LE(5 + body.length, 0);
  frame.write(type, 4, "latin1");
  frame.writeUInt32LE(id, 5);
  frame.set(body, headBytes);
  return frame;
}

const noBytes = new Uint8Array(0);

/**
 * Takes bytes as they come and calls back with every complete frame. Its body is a view that is valid
 * only during the call.
 */
export function createFrameReader(onFrame: (frame: Frame) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let parts: Buffer[] = [];
  let partBytes = 0;
  let wanted = headBytes;

  return (bytes) => {
    // A long frame comes in many pieces, which are joined once, when it is complete.
    parts.push(bytes);
    partBytes += bytes.length;
    if (partBytes < wanted) return;
    rest = parts.length === 1 ? bytes : Buffer.concat(parts, partBytes);
    let at = 0;
    wanted = headBytes;
    while (rest.length - at >= headBytes) {
      const length = rest.readUInt32LE(at);
      if (rest.length - at < 4 + length) {
        wanted = 4 + length;
        break;
      }
      onFrame({
        type: String.fromCharCode(rest[at + 4]!),
        id: rest.readUInt32LE(at + 5),
        body: rest.subarray(at + headBytes, at + 4 + length),
      });
      at += 4 + length;
    }
    parts = at === rest.length ? [] : [rest.subarray(at)];
    partBytes = rest.length - at;
  };
}

/** The part of a command that the kernel is told about. */
type Encoded = Omit<Confined, "grant" | "sandbox" | "cleanup">;

/** The fields of a start request. Throws a StartError for words that no program can be given. */
export function encodeLaunch(
  launch: Encoded,
  sink: Pick<Sink, "liveBytes" | "tailBytes" | "graceMs" | "keep">,
  wrapper?: Buffer,
  surroundings: Buffer = encodeSurroundings(launch),
): Buffer {
  const fields = createFields();
  if (wrapper) fields.bytes("H", wrapper);
  fields.whole(surroundings);
  addProgram(fields, launch.argv, launch.cwd);
  if (launch.stdin !== undefined || launch.tty) fields.bytes("i", noBytes);
  if (launch.run) fields.text("O", launch.run.id);
  if (launch.tty) fields.numbers("t", [launch.tty.columns, launch.tty.rows], 2);
  if (!wrapper) addOwner(fields, launch);
  if (launch.landlock) {
    const { handledFs, handledNet, scoped, rules, netRules, held, seccomp } = launch.landlock;
    fields.numbers("L", [handledFs, handledNet, scoped], 8);
    for (const { path, access } of rules) fields.bytes("l", Buffer.concat([pack([access], 8), cString(path)]));
    for (const { port, access } of netRules) fields.numbers("p", [port, access], 8);
    for (const path of held) fields.text("h", path);
    fields.bytes("s", seccomp);
  }
  if (launch.starts) addStartRules(fields, launch.starts);
  fields.numbers("b", [sink.liveBytes], 8);
  fields.numbers("T", [sink.tailBytes], 8);
  fields.numbers("g", [sink.graceMs], 4);
  if (sink.keep) fields.bytes("k", Buffer.concat([pack([sink.keep.bytes], 8), cString(sink.keep.path)]));
  return fields.end();
}

/** The fields of a start request that most commands of a session have in common: environment and limits. */
function encodeSurroundings(launch: Encoded): Buffer {
  const fields = createFields();
  for (const [name, value] of Object.entries(launch.env)) fields.text("e", `${name}=${value}`);
  for (const [resource, value] of rlimitsOf(launch)) {
    fields.bytes("r", Buffer.concat([pack([resource], 4), pack([value, value], 8)]));
  }
  addCaps(fields, launch);
  return fields.end();
}

/** Encodes these fields again only when they have changed. */
export function createSurroundings(): (launch: Encoded) => Buffer {
  let last: { readonly launch: Encoded; readonly bytes: Buffer } | undefined;
  return (launch) => {
    if (last === undefined || !hasSameSurroundings(last.launch, launch))
      last = { launch, bytes: Buffer.from(encodeSurroundings(launch)) };
    return last.bytes;
  };
}

function hasSameSurroundings(a: Encoded, b: Encoded): boolean {
  const [names, others] = [Object.keys(a.env), Object.keys(b.env)];
  return (
    (a.wrapper === undefined) === (b.wrapper === undefined) &&
    limitNumbers.every((name) => a.limits?.[name] === b.limits?.[name]) &&
    names.length === others.length &&
    names.every((name, at) => name === others[at] && a.env[name] === b.env[name])
  );
}

/** The limits that are sent. The time limit is not among them, because Node itself watches the time. */
const limitNumbers = ["processes", "fileBytes", "openFiles", "memoryBytes", "tempBytes"] as const;

/** As native/rules.c reads them. */
function addStartRules(fields: Fields, { rules, files, filter }: StartRules): void {
  if (filter) fields.bytes("s", filter);
  for (const { rule, program, words } of rules) {
    const tests = words.flatMap((test) =>
      "oneOf" in test
        ? ["w", ...test.oneOf.map((word) => `=${word}`)]
        : [
            "o",
            ...test.options.flatMap(({ text, groups }) => [
              `t${text}`,
              ...groups.flatMap(({ letters, names }) => [`l${letters}`, ...names.map((name) => `g${name}`)]),
            ]),
          ],
    );
    fields.bytes("x", Buffer.concat([`n${rule}`, ...program.map((name) => `p${name}`), ...tests].map(cString)));
  }
  for (const { fingerprint, isHidden, name, path } of files) {
    const head = Buffer.alloc(9);
    head.writeBigUInt64LE(fingerprint);
    head[8] = isHidden ? 1 : 0;
    fields.bytes("y", Buffer.concat([head, cString(name), cString(path)]));
  }
}

/**
 * Numbers that are the same on every Linux. The last one is our own: processes in addition to those
 * that exist already.
 */
const rlimitNumbers = { fsize: 1, core: 4, nproc: 6, nofile: 7, nprocOnTop: 0x100 } as const;

/** The limits that the kernel itself enforces for each process. */
function rlimitsOf({ limits = {}, wrapper }: Encoded): readonly (readonly [number, number])[] {
  return [
    // The kernel counts processes per user and namespace, so outside a namespace of our own, all other processes of
    // the user count too.
    ...(limits.processes === undefined
      ? []
      : [
          [
            wrapper === undefined ? rlimitNumbers.nprocOnTop : rlimitNumbers.nproc,
            limits.processes + keepersRoom,
          ] as const,
        ]),
    ...(limits.fileBytes === undefined ? [] : [[rlimitNumbers.fsize, limits.fileBytes] as const]),
    ...(limits.openFiles === undefined ? [] : [[rlimitNumbers.nofile, limits.openFiles] as const]),
  ];
}

/** Room for processes of ours in the same namespace. */
const keepersRoom = 64;

/** Limits that the launcher enforces for the command as a whole (native/limits.c). */
function addCaps(fields: Fields, { limits = {}, env }: Encoded): void {
  const { processes = 0, memoryBytes = 0, tempBytes = 0 } = limits;
  if (processes + memoryBytes + tempBytes === 0) return;
  fields.bytes(
    "m",
    Buffer.concat([pack([processes, memoryBytes, tempBytes].map(Math.floor), 8), cString(env["TMPDIR"] ?? "/tmp")]),
  );
}

/**
 * The fields of a sandbox. Equal bytes may share the ones that are kept ready; the stamp makes different
 * states of the disk differ.
 */
export function encodeWrapper(launch: Confined, ahead: number): Buffer {
  const fields = createFields();
  addProgram(fields, launch.wrapper ?? [], "/");
  fields.text("e", "PATH=/usr/local/bin:/usr/bin:/bin");
  addOwner(fields, launch);
  fields.numbers("w", [launch.reusable === true ? ahead : 0], 4);
  fields.text("n", launch.stamp ?? "");
  return fields.end();
}

function addProgram(fields: Fields, argv: readonly string[], cwd: string): void {
  for (const word of argv) fields.text("a", word);
  fields.text("c", cwd);
}

function addOwner(fields: Fields, of: Pick<Confined, "uid" | "gid" | "fds">): void {
  if (of.uid !== undefined) fields.numbers("u", [of.uid, of.gid ?? of.uid], 4);
  for (const { fd, data } of of.fds ?? []) fields.bytes("d", Buffer.concat([Buffer.of(fd), data]));
}

const signalNames: ReadonlyMap<number, NodeJS.Signals> = new Map(
  // Names of signals as the system has them. The first name of a number is its usual one.
  (Object.entries(constants.signals) as [NodeJS.Signals, number][])
    .toReversed()
    .map(([name, number]) => [number, name]),
);

export function signalNumber(name: NodeJS.Signals): number {
  return constants.signals[name];
}

const limitNames: ReadonlyMap<string, LimitName> = new Map([
  ["p", "processes"],
  ["m", "memoryBytes"],
  ["t", "tempBytes"],
]);

export function decodeEnd(body: Buffer): ChildEnd {
  const code = body.readInt32LE(0);
  const signal = body.readInt32LE(4);
  return {
    exitCode: code < 0 ? null : code,
    signal: signal === 0 ? null : (signalNames.get(signal) ?? "SIGKILL"),
    usage: { cpuMs: Number(body.readBigUInt64LE(8)) / 1000, peakBytes: Number(body.readBigUInt64LE(16)) },
    heldOpen: body[24] === 1,
    ...defined({ limit: limitNames.get(String.fromCharCode(body[25] ?? 0)) }),
  };
}

/** Adds what came later to what was reported before, because a command's list comes in parts. */
export function decodePrograms(body: Buffer, before?: StartedPrograms): StartedPrograms {
  const list: StartedProgram[] = [];
  for (let at = 4; at + 4 <= body.length;) {
    const size = body.readUInt32LE(at);
    const [refusedBy = "", ...argv] = body
      .toString("utf8", at + 4, at + 4 + size)
      .replace(/\0$/, "")
      .split("\0");
    list.push(refusedBy === "" ? { argv } : { argv, refusedBy });
    at += 4 + size;
  }
  return { list: [...(before?.list ?? []), ...list], unlisted: (before?.unlisted ?? 0) + body.readUInt32LE(0) };
}

const steps: ReadonlyMap<string, string> = new Map(
  Object.entries({
    x: "exec",
    c: "chdir",
    b: "sandbox",
    l: "landlock",
    s: "seccomp",
    t: "tty",
    u: "owner",
    r: "limit",
    d: "request",
  }),
);
const errorNames: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name]),
);

export function decodeFailure(body: Buffer, launch: Confined, programs?: StartedPrograms): StartError {
  const refused = programs?.list.find(({ refusedBy }) => refusedBy !== undefined);
  if (refused?.refusedBy !== undefined)
    return new StartError("rule", "EACCES", `${refused.argv[0]} is denied by the rule '${refused.refusedBy}'`);
  const step = steps.get(String.fromCharCode(body[0] ?? 0)) ?? "launcher";
  const code = errorNames.get(body.length >= 5 ? body.readInt32LE(1) : 0) ?? "EIO";
  const words = body.subarray(5).toString("utf8").trim();
  if (words === "") return new StartError(step, code, failureWords(step, code, launch));
  return new StartError(step, code, step === "sandbox" ? sandboxWords(words, launch) : words);
}

function failureWords(step: string, code: string, launch: Confined): string {
  if (step === "sandbox") return "it ended before the command was started";
  if (step === "chdir")
    return `the working directory ${launch.cwd} ${code === "ENOENT" ? "does not exist" : `cannot be entered (${code})`}`;
  if (step !== "exec") return `${step}: ${code}`;
  return cannotRun(launch.argv[0]!, code);
}
