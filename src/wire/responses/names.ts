/** Names in the Responses wire: a namespace stays apart, so only the spelling inside it is looked up. */
import type { CallItem } from "../../spec/model.ts";
import type { NameTable } from "../codec.ts";

/** One key for a name inside a namespace; names on this wire hold neither dot nor slash. */
export function nameKey(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}.${name}`;
}

/** The call under its neutral name, where the table knows the spelling. */
export function renamed(call: CallItem, names: NameTable | undefined): CallItem {
  const tool = names?.get(nameKey(call.name, call.namespace));
  if (tool === undefined) return call;
  const { namespace: _namespace, ...rest } = call;
  return { ...rest, name: tool.name, ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }) };
}
