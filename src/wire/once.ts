import type { ToolSpec } from "../spec/model.ts";
import type { Named } from "./names.ts";

/**
 * What is made of a list of tools, kept with it: the requests of a session send the same list again and again. It
 * also depends on the names met in the history, of which there are few, however long it is.
 */
export function oncePerTools<Made>() {
  const known = new WeakMap<readonly ToolSpec[], { readonly key: string; readonly made: Made }>();
  return (specs: readonly ToolSpec[], met: readonly Named[], how: string, make: () => Made): Made => {
    const key = [how, ...new Set(met.map(({ name, namespace = "" }) => `${namespace}\0${name}`))].join("\n");
    const before = known.get(specs);
    if (before?.key === key) return before.made;
    const made = make();
    known.set(specs, { key, made });
    return made;
  };
}
