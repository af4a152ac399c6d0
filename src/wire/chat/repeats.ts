/**
 * Servers that say things twice: arguments from their start again in every delta, an empty object before the real
 * one, one call at two indexes. Two values in one text of arguments are another matter: the model wrote them, nobody
 * knows which it meant, and such a call never runs.
 */
import type { GrowingText } from "../../base/growing-text.ts";
import { isWhole } from "../raw.ts";
import type { Nesting } from "./nesting.ts";

/** What is known of a call whose arguments grow. */
export interface GrowingArgs {
  readonly custom: boolean;
  readonly args: GrowingText;
  /** Follows the arguments as they grow, so that nothing is read twice. */
  readonly nesting: Nesting;
  /** The last delta, where it said everything again that came before it. */
  snapshot: string | undefined;
  /** The first delta was an empty object, which is how some servers announce arguments. */
  isAnnounced: boolean;
}

/** `added`, if it begins with all that was said before it and that was not whole; then it is meant to replace that. */
export function sayingAgain({ args, nesting, snapshot }: GrowingArgs, added: string): string | undefined {
  if (nesting.isOver && snapshot === undefined) return undefined;
  // Looking at the length first keeps the usual delta, which is short, from touching the long text at all.
  if (added.length < (snapshot ?? args).length) return undefined;
  return added.startsWith(snapshot ?? args.toString()) ? added : undefined;
}

/** The arguments without what was said twice. Only text that makes no sense as it stands is looked at. */
export function saidOnce({ args: said, custom, snapshot, isAnnounced }: GrowingArgs): string {
  const args = said.toString();
  if (custom) return args;
  if (snapshot !== undefined && snapshot !== args && !isWhole(args) && isWhole(snapshot)) return snapshot;
  const rest = args.slice(announcement.length);
  return isAnnounced && rest.trim() !== "" && isWhole(rest) ? rest : args;
}

/** What a server that announces arguments sends first. */
export const announcement = "{}";

interface WholeCall {
  readonly name: string;
  args: string;
}

/** Whether the `again` is the `first` call under another index; the first then has the arguments, wherever they were said. */
export function absorbs(first: WholeCall, again: WholeCall): boolean {
  if (first.name !== again.name) return false;
  if (first.args === "") first.args = again.args;
  return again.args === "" || again.args === first.args;
}
