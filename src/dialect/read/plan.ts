/** A dialect that is ready to be read, with its markers sorted and its readers built. */
import type { Dialect, Reasoning, TaggedBody } from "../dialect.ts";
import { createScanner, markers, type Scanner } from "../input.ts";
import type { TextTool, ToolTable } from "../tools.ts";
import { createBlockReader, type BlockReader } from "./block.ts";

/** What a marker found in plain text leads to. */
export type Opening =
  | { readonly does: "block"; readonly reader: BlockReader }
  | { readonly does: "bare"; readonly reader: BlockReader; readonly body: TaggedBody }
  | { readonly does: "reasoning"; readonly reasoning: Reasoning }
  | { readonly does: "name"; readonly tool: TextTool }
  | { readonly does: "drop" | "result" | "echo" | "thought-end" | "tag" | "tick" | "python" | "close" };

export interface Plan {
  readonly dialect: Dialect;
  readonly blocks: readonly BlockReader[];
  /** Blocks that nothing opens. The message must consist of nothing else. */
  readonly whole: readonly BlockReader[];
  readonly openings: ReadonlyMap<string, Opening>;
  readonly inText: Scanner;
  readonly thoughts: ReadonlyMap<Reasoning, Scanner>;
  readonly undecided: Scanner;
  readonly stray: readonly string[];
  /** What opens a call or its block. */
  readonly opens: readonly string[];
}

/** Ends of turns that some servers leave in the text. */
const turnEnds = [
  "</s>",
  "<|im_end|>",
  "<|eot_id|>",
  "<|eot|>",
  "<|eom|>",
  "<|eom_id|>",
  "<|endoftext|>",
  "<|end|>",
  "<|return|>",
];

/** A plan holds no state of an answer, so one serves every decoder of its dialect. */
const made = new WeakMap<Dialect, Plan>();

export function planOf(dialect: Dialect, tools: ToolTable): Plan {
  const plan = made.get(dialect) ?? createPlan(dialect);
  made.set(dialect, plan);
  return dialect.tags?.bareNames === true ? withNames(plan, tools) : plan;
}

/** A plan for dialects in which a tool's name alone on a line opens a call as well. */
function withNames(plan: Plan, tools: ToolTable): Plan {
  const names = tools.list.flatMap((tool) => {
    const tag = tool.xml?.tag ?? tool.name;
    return [`${tag}\n`, `${tag}:\n`].map((marker) => [marker, { does: "name", tool }] as const);
  });
  const openings = new Map<string, Opening>([...names, ...plan.openings]);
  return { ...plan, openings, inText: createScanner([...openings.keys()]) };
}

function createPlan(dialect: Dialect): Plan {
  const own = dialect.reasoning ?? [];
  const reasoning = own.some(({ close }) => close.includes(usual.close[0]!)) ? own : [...own, usual];
  const thoughtEnds = reasoning.flatMap(({ close }) => close);
  const ends = [...turnEnds, ...thoughtEnds];
  const blocks = dialect.blocks.map((block) => createBlockReader(block, ends, thoughtEnds));
  const openings = openingsOf(dialect, blocks, reasoning);
  const opens = blocks.flatMap(({ block, opens }) => (block.lineStart === true ? [] : opens));
  return {
    dialect,
    blocks,
    whole: blocks.filter(({ block }) => block.whole === true),
    openings,
    inText: createScanner([...openings.keys()]),
    thoughts: new Map(reasoning.map((one) => [one, createScanner(one.close, opens)])),
    undecided: createScanner(
      own.flatMap(({ open, close }) => [...open, ...close]),
      [...openings]
        .filter(([, { does }]) => does === "block" || does === "bare" || does === "tag")
        .map(([marker]) => marker),
    ),
    stray: markers(dialect.stray ?? [], ends, dialect.blocks.flatMap(strayCloses)),
    opens: markers(
      [...openings].flatMap(([marker, { does }]) => (does === "block" || does === "bare" ? [marker] : [])),
    ),
  };
}

/** Closing markers that a model may write once too often. Fences and brackets are not among them. */
function strayCloses({ close }: Dialect["blocks"][number]): readonly string[] {
  return close.filter((marker) => marker.length > 4);
}

/**
 * How most models mark their thoughts. What looks like a call inside them is not one, whatever else the
 * dialect says.
 */
const usual: Reasoning = { open: ["<think>"], close: ["</think>"] };

function openingsOf(
  dialect: Dialect,
  blocks: readonly BlockReader[],
  thoughts: readonly Reasoning[],
): ReadonlyMap<string, Opening> {
  const openings = new Map<string, Opening>();
  const add = (list: readonly string[], opening: Opening) => {
    for (const marker of list) if (!openings.has(marker)) openings.set(marker, opening);
  };
  for (const reader of blocks) {
    add(reader.opens, { does: "block", reader });
    if (reader.block.pythonInText === true) add(["["], { does: "python" });
    for (const body of reader.block.bodies) {
      if (body.kind === "tagged" && body.bare === true) {
        add(
          body.call.map((pair) => pair.open),
          { does: "bare", reader, body },
        );
        add(reader.closes, { does: "close" });
      }
    }
  }
  for (const reasoning of thoughts) add(reasoning.open, { does: "reasoning", reasoning });
  add(dialect.results ?? [], { does: "result" });
  add(dialect.drop ?? [], { does: "drop" });
  // A tag's name may be a tool's, so repeated results are looked for only if tags mean nothing else.
  if (dialect.tags === undefined) add(echoed, { does: "echo" });
  for (const reasoning of thoughts) add(reasoning.close, { does: "thought-end" });
  if (dialect.tags !== undefined) add(["<"], { does: "tag" });
  add(["`", "~~~"], { does: "tick" });
  return openings;
}

/** Markers around results in one dialect or another. A model of any dialect may repeat what it was given. */
const echoed = ["<tool_response>", "<function_results>", "<tool_result>", "<tool_results>", "<tool_output>"];

/** The marker that closes such a result, or undefined if the opening one only begins a line. */
export function closeOfResult(open: string): string | undefined {
  if (/^<[a-z_]+>$/.test(open)) return `</${open.slice(1)}`;
  if (open.startsWith("[")) return `[/${open.slice(1)}`;
  for (const [begins, ends] of pairedWords) if (open.includes(begins)) return open.replace(begins, ends);
  return /^<\|[a-z_]+>$/.test(open) ? `<${open.slice(2, -1)}|>` : undefined;
}

const pairedWords = [
  ["_start|>", "_end|>"],
  ["begin", "end"],
  ["START", "END"],
  ["start_", "end_"],
] as const;
