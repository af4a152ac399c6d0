/** Servers that say things twice: arguments from the start again, an empty object before the real one, one call at two indexes. */
import type { GrowingText } from "../../base/growing-text.ts";
import { isObject } from "../../base/json.ts";
import { isWhole, parseObject } from "../raw.ts";
import type { Nesting } from "./nesting.ts";

/** What is known of a call whose arguments grow. */
export interface GrowingArgs {
  readonly custom: boolean;
  readonly args: GrowingText;
  /** Follows the arguments as they grow, so that nothing is read twice. */
  readonly nesting: Nesting;
  /** The last delta, where it said everything again that came before it. */
  snapshot: string | undefined;
}

/** `added`, if it begins with all that was said before it; then it may be meant to replace that. */
export function sayingAgain({ args, snapshot }: GrowingArgs, added: string): string | undefined {
  // Looking at the length first keeps the usual delta, which is short, from touching the long text at all.
  if (added.length < (snapshot ?? args).length) return undefined;
  return added.startsWith(snapshot ?? args.toString()) ? added : undefined;
}

/** The arguments without what was said twice. Only text that makes no sense as it stands is looked at. */
export function saidOnce({ args: said, custom, nesting, snapshot }: GrowingArgs): string {
  const args = said.toString();
  if (custom) return args;
  if (snapshot !== undefined && snapshot !== args && !isWhole(args) && isWhole(snapshot)) return snapshot;
  if (!nesting.isOver || nesting.end >= args.trimEnd().length) return args;
  const first = args.slice(0, nesting.end);
  const second = args.slice(nesting.end);
  if (isEmpty(second) || isEqual(first, second)) return first;
  return isEmpty(first) && isWhole(second) ? second : args;
}

function isEmpty(text: string): boolean {
  const value = parseObject(text);
  return value !== undefined && Object.keys(value).length === 0;
}

/** Spaces and line ends apart. */
function isEqual(left: string, right: string): boolean {
  const [one, other] = [parseObject(left), parseObject(right)];
  return isObject(one) && isObject(other) && JSON.stringify(one) === JSON.stringify(other);
}

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
