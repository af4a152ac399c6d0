/**
 * Names on the wire. A namespace and a tool are joined, and characters that a provider does not accept
 * are replaced. A table says what each spelling stands for: names are looked up and never split.
 */
import type { CallKind } from "../spec/model.ts";
import { spellNames, type NameRules } from "../spec/name.ts";
import type { NamedTool, NameTable } from "./codec.ts";

/** A tool's spelling on a wire. */
export type Spell = (name: string, namespace?: string) => string;

export interface NameBook {
  /** Wire spelling → tool, for the decoder. Declared tools only. */
  readonly table: NameTable;
  /** The spelling of a tool, whether declared or only found in the history. */
  readonly spell: Spell;
}

export interface Named {
  readonly name: string;
  readonly namespace?: string;
}

/** `declared` is in order of preference: of two tools with the same name and namespace, the first is kept. */
export function createNameBook(
  declared: readonly NamedTool[],
  met: readonly Named[] = [],
  rules?: NameRules,
): NameBook {
  const keys = new Map<string, string>();
  const owners = new Map<string, string>();
  for (const tool of [...declared, ...met]) {
    const identity = identify(tool);
    if (keys.has(identity)) continue;
    let key = tool.namespace === undefined ? tool.name : joined(tool.namespace, tool.name);
    // Another tool may have the joined name itself. The extra character forces a hash, and so another spelling.
    while (owners.has(key)) key += "\0";
    owners.set(key, identity);
    keys.set(identity, key);
  }
  const spellings = spellNames([...keys.values()], rules);
  const spell: Spell = (name, namespace) => {
    const key = keys.get(identify(namespace === undefined ? { name } : { name, namespace }));
    return (key === undefined ? undefined : spellings.get(key)) ?? name;
  };
  const table = new Map<string, NamedTool>();
  for (const tool of declared) {
    const spelling = spell(tool.name, tool.namespace);
    if (!table.has(spelling)) table.set(spelling, tool);
  }
  return { table, spell };
}

function joined(namespace: string, name: string): string {
  return namespace.endsWith("__") ? namespace + name : `${namespace}__${name}`;
}

function identify(tool: Named): string {
  return `${tool.namespace ?? ""}\0${tool.name}`;
}

/** The tool that a name on the wire stands for. A name that nobody declared is a function of that name. */
export function lookUp(table: NameTable | undefined, spelling: string, kind: CallKind = "function"): NamedTool {
  return table?.get(spelling) ?? { name: spelling, kind };
}

/** Tool → the client's spelling, for encoders of answers. The reverse of a `NameTable`. */
export function spellerOf(table: NameTable | undefined): Spell {
  const spellings = new Map<string, string>();
  for (const [spelling, tool] of table ?? []) spellings.set(identify(tool), spelling);
  return (name, namespace) => {
    const known = spellings.get(identify(namespace === undefined ? { name } : { name, namespace }));
    return known ?? (namespace === undefined ? name : joined(namespace, name));
  };
}
