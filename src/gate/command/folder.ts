import { resolve } from "node:path";
import { statOf } from "../paths.ts";
import type { Found } from "./found.ts";
import type { State } from "./state.ts";

/** Follows `cd DIR`. In any other form the folder becomes unknown. */
export function changeFolder(found: Found, state: State): void {
  const operands = found.words.slice(1).map((word) => word.value);
  if (operands[0] === "--") operands.shift();
  const [target] = operands;
  if (operands.length !== 1 || target === undefined || target === "" || target.startsWith("-")) {
    state.doubts.add("cannot tell where cd goes");
    state.cwds = [];
    return;
  }
  const there = found.cwds.map((cwd) => resolve(cwd, target));
  const exists = there.length > 0 && there.every((folder) => statOf(folder)?.isDirectory() === true);
  const next = state.conditional === 0 && exists ? there : [...new Set([...state.cwds, ...there])];
  if (next.length > 8) state.doubts.add("too many folders to follow");
  state.cwds = next.length > 8 ? [] : next;
}
