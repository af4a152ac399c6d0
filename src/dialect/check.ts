/**
 * Whether a dialect that a program brings is one. What is wrong is told with its place when the dialect is first used;
 * otherwise a marker that is a string instead of a list, or a misspelled kind, would fail deep inside the reader.
 */
import { checkShape, type Shape } from "../base/shape.ts";
import type { Block, Body, Dialect, Reasoning, ResultForm, TagPair, TagRules } from "./dialect.ts";

/** A shape for each name that the type has, and no other name. */
function table<Type>(fields: { readonly [Name in keyof Required<Type>]: Shape }, ...required: (keyof Type & string)[]) {
  return { fields, required, noun: "field" } satisfies Shape;
}

type BodyOf<Kind extends Body["kind"]> = Extract<Body, { readonly kind: Kind }>;

const trim: Shape = { oneOf: ["none", "one-newline"] };
const pair = table<TagPair>({ open: "string", close: "string", name: "string" }, "open", "close");
const pairs: Shape = { list: pair };

const bodies: { readonly [Kind in Body["kind"]]: Shape } = {
  json: table<BodyOf<"json">>({
    kind: "string",
    name: "strings",
    args: "strings",
    nameAsKey: "boolean",
    list: "boolean",
    id: "table",
    indent: "number",
    lines: "boolean",
  }),
  named: table<BodyOf<"named">>(
    {
      kind: "string",
      before: "strings",
      separator: "strings",
      after: "strings",
      close: "strings",
      id: "strings",
      idFirst: "strings",
      direct: "boolean",
      kimi: "boolean",
    },
    "separator",
  ),
  tagged: table<BodyOf<"tagged">>(
    {
      kind: "string",
      call: pairs,
      parameter: pairs,
      end: "string",
      trim,
      tags: { fields: { call: "string", parameter: "string" }, required: ["call", "parameter"], noun: "field" },
      inline: "boolean",
      compact: "boolean",
      python: "boolean",
      bare: "boolean",
      cdata: "boolean",
      undeclared: { oneOf: ["json"] },
      nested: "string",
      nameIn: "strings",
      json: "boolean",
      stopped: "boolean",
    },
    "call",
    "parameter",
    "trim",
    "tags",
  ),
  pairs: table<BodyOf<"pairs">>(
    { kind: "string", key: pair, value: pair, separator: "string", call: pair, trim, compact: "boolean" },
    "key",
    "value",
    "trim",
  ),
  python: table<BodyOf<"python">>(
    { kind: "string", list: { oneOf: ["brackets", "lines"] }, suffix: "string", quote: { oneOf: ["'"] } },
    "list",
  ),
  quoted: table<BodyOf<"quoted">>(
    { kind: "string", prefix: "string", quote: "string", sorted: "boolean" },
    "prefix",
    "quote",
  ),
  action: table<BodyOf<"action">>({ kind: "string", input: "strings", until: "strings" }, "input", "until"),
  codeblock: table<BodyOf<"codeblock">>({ kind: "string" }),
};

const block = table<Block>(
  {
    open: "strings",
    close: "strings",
    bodies: { list: "table" },
    own: "number",
    between: "strings",
    lineStart: "boolean",
    suffixed: "boolean",
    whole: "boolean",
    pythonInText: "boolean",
    layout: {
      fields: { open: "string", between: "string", close: "string" },
      required: ["open", "between", "close"],
      noun: "field",
    },
  },
  "open",
  "close",
  "bodies",
);

const shape = table<Dialect>(
  {
    name: "string",
    aliases: "strings",
    title: "string",
    models: "strings",
    notes: "string",
    trust: { oneOf: ["special-token", "taught", "markerless"] },
    blocks: { list: block },
    reasoning: {
      list: table<Reasoning>({ open: "strings", close: "strings", callEnds: "boolean" }, "open", "close"),
    },
    drop: "strings",
    stray: "strings",
    results: "strings",
    channels: { oneOf: ["harmony", "muse", "inkling", "functionary"] },
    mixed: "boolean",
    tags: table<TagRules>(
      {
        trim: { oneOf: ["none", "one-newline", "all"] },
        entities: "boolean",
        body: { oneOf: ["elements", "yaml"] },
        bareNames: "boolean",
      },
      "trim",
      "body",
    ),
    stop: "strings",
    ids: { oneOf: ["functions", "nine", "position"] },
    result: table<ResultForm>(
      {
        role: { oneOf: ["user", "assistant", "tool"] },
        each: "string",
        open: "string",
        between: "string",
        close: "string",
      },
      "role",
      "each",
    ),
  },
  "name",
  "title",
  "models",
  "trust",
  "blocks",
  "result",
);

/** Throws a `TypeError` that names the field which is wrong, and what it has to be. */
export function checkDialect(given: Dialect): void {
  const root = [typeof given?.name === "string" ? given.name : "it"];
  const problem = checkShape(given, shape, root) ?? bodyProblem(given, root);
  if (problem !== undefined) throw new TypeError(`dialect: ${problem.message}`);
}

function bodyProblem({ blocks }: Dialect, root: readonly string[]) {
  for (const [at, { bodies: given }] of blocks.entries())
    for (const [index, body] of given.entries()) {
      const path = [...root, "blocks", at, "bodies", index];
      const wrong =
        checkShape(body.kind, { oneOf: Object.keys(bodies) }, [...path, "kind"]) ??
        checkShape(body, bodies[body.kind], path);
      if (wrong !== undefined) return wrong;
    }
  return undefined;
}
