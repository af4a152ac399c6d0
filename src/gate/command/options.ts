/**
 * Reads a command's options as getopt does, against a list of the known ones. An unknown option is
 * reported and never guessed.
 */

/**
 * `short`: letters; `:` after one means it takes a value, `?` that a value may be glued on.
 * `long`: names; `=` after one means it takes a value, `?` that `=value` may follow.
 */
export interface OptionSpec {
  readonly short?: string;
  readonly long?: string;
  /** `-5` is a number, as in head, tail, git log. */
  readonly digits?: boolean;
  /** The first operand ends the options (env, timeout, xargs). */
  readonly stopAtOperand?: boolean;
}

export interface ParsedOptions {
  readonly options: readonly { readonly name: string; readonly value: string | undefined }[];
  readonly operands: readonly string[];
}

export type OptionsResult = ParsedOptions | { readonly unknown: string };

export interface CompiledSpec {
  readonly short: ReadonlyMap<string, "none" | "value" | "optional">;
  readonly long: ReadonlyMap<string, "none" | "value" | "optional">;
  readonly digits: boolean;
  readonly stopAtOperand: boolean;
}

const compiled = new WeakMap<OptionSpec, CompiledSpec>();

function compile(spec: OptionSpec): CompiledSpec {
  const known = compiled.get(spec);
  if (known !== undefined) return known;
  const kind = (mark: string | undefined) =>
    mark === ":" || mark === "=" ? "value" : mark === "?" ? "optional" : "none";
  const made: CompiledSpec = {
    short: new Map([...(spec.short ?? "").matchAll(/([^:?])([:?]?)/g)].map((match) => [match[1]!, kind(match[2])])),
    long: new Map(
      (spec.long ?? "").split(/\s+/).map((name) => [name.replace(/[=?]$/, ""), kind(/[=?]$/.exec(name)?.[0])]),
    ),
    digits: spec.digits ?? false,
    stopAtOperand: spec.stopAtOperand ?? false,
  };
  compiled.set(spec, made);
  return made;
}

export function parseOptions(args: readonly string[], spec: OptionSpec): OptionsResult {
  const table = compile(spec);
  const options: { name: string; value: string | undefined }[] = [];
  const operands: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index]!;
    if (arg === "--") return { options, operands: [...operands, ...args.slice(index + 1)] };
    if (!arg.startsWith("-") || arg === "-") {
      if (table.stopAtOperand) return { options, operands: args.slice(index) };
      operands.push(arg);
      continue;
    }
    const taken = arg.startsWith("--") ? readLong(arg, args[index + 1], table) : readShort(arg, args[index + 1], table);
    if (taken === undefined) return { unknown: arg };
    options.push(...taken.options);
    if (taken.usedNext) index++;
  }
  return { options, operands };
}

interface Taken {
  readonly options: readonly { readonly name: string; readonly value: string | undefined }[];
  readonly usedNext: boolean;
}

function readLong(arg: string, next: string | undefined, table: CompiledSpec): Taken | undefined {
  const equals = arg.indexOf("=");
  const name = equals < 0 ? arg.slice(2) : arg.slice(2, equals);
  const kind = table.long.get(name);
  if (name === "" || kind === undefined) return undefined;
  if (equals >= 0)
    return kind === "none" ? undefined : { options: [{ name, value: arg.slice(equals + 1) }], usedNext: false };
  if (kind !== "value") return { options: [{ name, value: undefined }], usedNext: false };
  return next === undefined ? undefined : { options: [{ name, value: next }], usedNext: true };
}

function readShort(arg: string, next: string | undefined, table: CompiledSpec): Taken | undefined {
  if (table.digits && /^-\d+$/.test(arg)) return { options: [{ name: "n", value: arg.slice(1) }], usedNext: false };
  const options: { name: string; value: string | undefined }[] = [];
  for (let index = 1; index < arg.length; index++) {
    const name = arg[index]!;
    const kind = table.short.get(name);
    if (kind === undefined) return undefined;
    const rest = arg.slice(index + 1);
    if (kind === "none") {
      options.push({ name, value: undefined });
      continue;
    }
    if (rest !== "" || kind === "optional")
      return { options: [...options, { name, value: rest === "" ? undefined : rest }], usedNext: false };
    return next === undefined ? undefined : { options: [...options, { name, value: next }], usedNext: true };
  }
  return { options, usedNext: false };
}
