/** Runs a classic BPF program as the kernel would, on any system: the few instructions seccomp filters are made of. */
export interface SystemCall {
  readonly nr: number;
  readonly arch: number;
  readonly args?: readonly bigint[];
}

export type Verdict = "allow" | "kill" | "ask" | { readonly errno: number };

export function runFilter(program: Uint8Array, call: SystemCall): Verdict {
  const view = new DataView(program.buffer, program.byteOffset, program.byteLength);
  const data = seccompData(call);
  let accumulator = 0;
  for (let index = 0; index * 8 < program.byteLength; index++) {
    const code = view.getUint16(index * 8, true);
    const jump = { taken: view.getUint8(index * 8 + 2), not: view.getUint8(index * 8 + 3) };
    const k = view.getUint32(index * 8 + 4, true);
    if (code === 0x20) accumulator = data.getUint32(k, true);
    else if (code === 0x54) accumulator = (accumulator & k) >>> 0;
    else if (code === 0x06) return verdict(k);
    else index += test(code, accumulator, k) ? jump.taken : jump.not;
  }
  throw new Error("the program ended without a verdict");
}

function test(code: number, accumulator: number, k: number): boolean {
  if (code === 0x15) return accumulator === k;
  if (code === 0x35) return accumulator >= k;
  if (code === 0x45) return (accumulator & k) !== 0;
  throw new Error(`unknown instruction ${code}`);
}

function seccompData({ nr, arch, args = [] }: SystemCall): DataView {
  const view = new DataView(new ArrayBuffer(64));
  view.setUint32(0, nr, true);
  view.setUint32(4, arch, true);
  args.forEach((value, index) => view.setBigUint64(16 + 8 * index, value, true));
  return view;
}

function verdict(value: number): Verdict {
  if (value === 0x7fff0000) return "allow";
  if (value === 0x80000000) return "kill";
  if (value === 0x7fc00000) return "ask";
  if (value >>> 16 === 5) return { errno: value & 0xffff };
  throw new Error(`unknown verdict ${value.toString(16)}`);
}
