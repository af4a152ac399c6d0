/** What a format with an element per parameter looks for, sorted once. */
import type { Block, TaggedBody, TagPair } from "../dialect.ts";
import { createScanner, markers, type Scanner } from "../input.ts";
import type { TextTool } from "../tools.ts";
import { propertyNames } from "../values.ts";

/** The markers of one dialect, ready to be looked for. */
export interface TaggedMarks {
  readonly body: TaggedBody;
  readonly block: Block | undefined;
  readonly end: string;
  /** What a call may begin with: its opener, or what models write by mistake instead. */
  readonly starts: readonly string[];
  readonly callOpens: readonly string[];
  readonly callCloses: readonly string[];
  readonly parameterOpens: readonly string[];
  readonly blockOpens: readonly string[];
  readonly blockCloses: readonly string[];
  /** Parameters whose tag is their name. */
  readonly fixed: ReadonlyMap<string, string>;
  readonly inValue: Scanner;
  readonly afterValue: readonly string[];
  readonly afterCall: readonly string[];
}

export function createTaggedMarks(body: TaggedBody, block: Block | undefined): TaggedMarks {
  const callOpens = markers(body.call.map((pair) => pair.open));
  const callCloses = markers(body.call.map((pair) => pair.close));
  const parameterOpens = markers(body.parameter.map((pair) => pair.open));
  const parameterCloses = markers(body.parameter.map((pair) => pair.close));
  const blockOpens = markers(block?.open ?? []);
  const blockCloses = markers(block?.close ?? []);
  return {
    body,
    block,
    end: body.end ?? ">",
    starts: markers(
      callOpens,
      namedElements(body).map(({ open }) => open),
      headless(body),
    ),
    callOpens,
    callCloses,
    parameterOpens,
    blockOpens,
    blockCloses,
    fixed: new Map(body.parameter.flatMap((pair) => (pair.name === undefined ? [] : [[pair.open, pair.name]]))),
    inValue: createScanner(parameterCloses, callCloses, blockCloses, parameterOpens, callOpens),
    afterValue: markers(
      parameterOpens,
      callCloses,
      blockCloses,
      block === undefined || block.open.length === 0 ? [] : callOpens,
    ),
    afterCall: markers(blockCloses, callOpens, blockOpens, block?.between ?? []),
  };
}

/** The marks for a call whose parameters are elements of their own names. */
export function byProperties(marks: TaggedMarks, pair: TagPair, tool: TextTool): TaggedMarks {
  const names = propertyNames(tool.parameters);
  const parameter = names.map((name) => ({ open: `<${name}>`, close: `</${name}>`, name }));
  return createTaggedMarks({ ...marks.body, call: [pair, ...marks.body.call], parameter }, marks.block);
}

export function namedElements(body: TaggedBody): readonly TagPair[] {
  return (body.nameIn ?? []).map((name) => ({ open: `<${name}`, close: `</${name}>` }));
}

/** Openers without their `<`, such as `function=`. */
export function headless(body: TaggedBody): readonly string[] {
  return body.nameIn === undefined ? [] : markers(body.call.map(({ open }) => `${open.slice(1)}=`));
}
