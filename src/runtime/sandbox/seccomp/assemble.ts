/**
 * Classic BPF as seccomp runs it: a list of steps with named jump targets in, the kernel's
 * `struct sock_filter[]` out (8 bytes each, little endian on both architectures we know).
 */

/** A place jumps may go to, or one instruction. Without a target a jump falls through. */
export type Step =
  | { readonly label: string }
  | { readonly load: number }
  | { readonly and: number }
  | { readonly ret: number }
  | { readonly test: Test; readonly k: number; readonly yes?: string; readonly no?: string };

/** How a value is compared: equal, any of these bits set, at least. */
type Test = "eq" | "anyBit" | "atLeast";

const opcodes = { load: 0x20, and: 0x54, ret: 0x06, eq: 0x15, atLeast: 0x35, anyBit: 0x45 } as const;

/** The kernel refuses longer programs, and a jump is one byte. */
const maxInstructions = 4096;
const maxJump = 255;

export function assemble(steps: readonly Step[]): Uint8Array {
  const places = new Map<string, number>();
  const instructions: Exclude<Step, { readonly label: string }>[] = [];
  for (const step of steps) {
    if ("label" in step) places.set(step.label, instructions.length);
    else instructions.push(step);
  }
  if (instructions.length > maxInstructions)
    throw new RangeError(`a seccomp program of ${instructions.length} instructions is too long`);
  const bytes = new Uint8Array(instructions.length * 8);
  const view = new DataView(bytes.buffer);
  const jump = (from: number, label: string | undefined) => {
    if (label === undefined) return 0;
    const to = places.get(label);
    if (to === undefined) throw new RangeError(`no such label: ${label}`);
    const distance = to - from - 1;
    // Classic BPF knows forward jumps only, so every program ends.
    if (distance < 0 || distance > maxJump) throw new RangeError(`jump to ${label} out of range: ${distance}`);
    return distance;
  };
  instructions.forEach((step, index) => {
    const at = index * 8;
    if ("load" in step) return write(view, at, [opcodes.load, 0, 0, step.load]);
    if ("and" in step) return write(view, at, [opcodes.and, 0, 0, step.and]);
    if ("ret" in step) return write(view, at, [opcodes.ret, 0, 0, step.ret]);
    return write(view, at, [opcodes[step.test], jump(index, step.yes), jump(index, step.no), step.k]);
  });
  return bytes;
}

type Fields = readonly [code: number, jumpTrue: number, jumpFalse: number, k: number];

function write(view: DataView, at: number, [code, jumpTrue, jumpFalse, k]: Fields): void {
  view.setUint16(at, code, true);
  view.setUint8(at + 2, jumpTrue);
  view.setUint8(at + 3, jumpFalse);
  view.setUint32(at + 4, k >>> 0, true);
}
