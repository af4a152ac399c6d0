/** Names in the Responses wire: a namespace stays apart, so only the spelling inside it is looked up. */
import type { Item } from "../../spec/model.ts";
import type { NameTable } from "../codec.ts";

/** One key for a name inside a namespace; names on this wire hold neither dot nor slash. */
export function nameKey(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}.${name}`;
}

/** The item under its neutral name, where the table knows the spelling. */
export function renamed(item: Item, names: NameTable | undefined): Item {
  if (names === undefined || item.type !== "call") return item;
  const tool = names.get(nameKey(item.name, item.namespace));
  if (tool === undefined) return item;
  const { namespace: _namespace, ...rest } = item;
  return { ...rest, name: tool.name, ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }) };
}
