/**
 * Several calls wrapped in one call of a tool that nobody declared, as models trained on older
 * products write them. They are taken apart only if the wrapper is complete and every inner call is
 * one that we could have been asked.
 */
import { isObject } from "../base/json.ts";
import { writeArguments } from "./arguments.ts";
import type { DecodeOptions } from "./codec.ts";
import { parseObject, word } from "./raw.ts";

const wrappers = new Set(["multi_tool_use.parallel", "multi_tool_use_parallel", "multi_tool_use", "parallel"]);

export function isParallelWrapper(name: string): boolean {
  return wrappers.has(name);
}

/** A call as its wire spells it. */
export interface BareCall {
  readonly id: string | undefined;
  readonly name: string;
  readonly args: string;
}

/** The names that may be called, if the decoder was told. */
export function declaredNames(options: DecodeOptions): ReadonlySet<string> {
  return new Set([...(options.declared ?? []), ...(options.names?.keys() ?? [])]);
}

/** The inner calls, or undefined when the call is to be left as it is. */
export function expandParallel(call: BareCall, declared: ReadonlySet<string>): readonly BareCall[] | undefined {
  if (!isParallelWrapper(call.name) || declared.has(call.name)) return undefined;
  const uses = parseObject(call.args)?.["tool_uses"];
  if (!Array.isArray(uses) || uses.length === 0) return undefined;
  const inner: BareCall[] = [];
  for (const [at, use] of uses.entries()) {
    if (!isObject(use)) return undefined;
    const name = innerName(word(use["recipient_name"]) ?? word(use["name"]), declared);
    const parameters = use["parameters"] ?? use["arguments"] ?? {};
    if (name === undefined || !isObject(parameters)) return undefined;
    const id = call.id === undefined ? undefined : `${call.id}_${at}`;
    inner.push({ id, name, args: writeArguments(parameters) });
  }
  return inner;
}

function innerName(recipient: string | undefined, declared: ReadonlySet<string>): string | undefined {
  if (recipient === undefined || isParallelWrapper(recipient)) return undefined;
  if (declared.has(recipient)) return recipient;
  const bare = recipient.startsWith("functions.") ? recipient.slice("functions.".length) : recipient;
  return declared.size === 0 || declared.has(bare) ? bare : undefined;
}
