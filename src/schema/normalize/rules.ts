/** What each target accepts, as data. The facts are in docs/schemas.md. A new provider is a new entry here. */
export const schemaTargets = ["basic", "openai", "openai-strict", "anthropic", "gemini", "llama-cpp"] as const;

/** Whose rules a schema is lowered to. */
export type SchemaTarget = (typeof schemaTargets)[number];

/** A target by its name. 0.1 called the first one `seed`. */
export function findTarget(name: unknown): SchemaTarget | undefined {
  return name === "seed" ? "basic" : schemaTargets.find((target) => target === name);
}

export interface TargetRules {
  /** Local references stay, in one `$defs` table. Otherwise their targets are written in place. */
  readonly refs: "keep" | "inline";
  /** What a reference may have beside it. */
  readonly refDescription: boolean;
  /** Alternatives: as anyOf, as anyOf with nothing beside it, or only the first that can be written. */
  readonly unions: "anyOf" | "anyOf-alone" | "first";
  /** null among the types: in the list of types, as `nullable`, or left out. */
  readonly nulls: "type" | "nullable" | "drop";
  /** Several types at once as a list, or as alternatives. */
  readonly typeLists: boolean;
  readonly integer: boolean;
  /** Every object closed, every property required, optional ones nullable. */
  readonly closed: boolean;
  readonly additional: boolean;
  /** Objects list their properties even if there are none. Elsewhere that would forbid all keys. */
  readonly emptyProperties: boolean;
  /** Enums of any values, of text only, or as words in the description. */
  readonly enums: "any" | "strings" | "words";
  readonly mostEnumValues: number;
  /** What a schema that says nothing becomes. */
  readonly untyped: "empty" | "string" | "alternatives";
  /** Property names outside `[A-Za-z0-9_.-]{1,64}` are respelled. */
  readonly plainNames: boolean;
  /** Bounds and similar keywords that are written. The others become words. */
  readonly limits: ReadonlySet<string>;
  readonly formats: ReadonlySet<string> | "any";
  readonly patterns: "any" | "no-lookaround" | "plain";
  /** Grammars multiply bounds, so larger products are left out, counted on the way down. */
  readonly largestBound: number;
  readonly default: boolean;
}

const numberLimits = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const itemLimits = ["minItems", "maxItems"];
const stringLimits = ["minLength", "maxLength", "pattern", "format"];

const open: TargetRules = {
  refs: "keep",
  refDescription: true,
  unions: "anyOf",
  nulls: "type",
  typeLists: true,
  integer: true,
  closed: false,
  additional: true,
  emptyProperties: false,
  enums: "any",
  mostEnumValues: Infinity,
  untyped: "empty",
  plainNames: false,
  limits: new Set([...numberLimits, ...itemLimits, ...stringLimits, "uniqueItems", "minProperties", "maxProperties"]),
  formats: "any",
  patterns: "any",
  largestBound: Infinity,
  default: true,
};

export const targetRules: Readonly<Record<SchemaTarget, TargetRules>> = {
  /** A small subset: five types, each node with exactly one. */
  basic: {
    ...open,
    refs: "inline",
    unions: "first",
    nulls: "drop",
    typeLists: false,
    integer: false,
    emptyProperties: true,
    enums: "words",
    untyped: "string",
    limits: new Set(["minimum", "maximum", "minItems", "maxItems"]),
    formats: new Set(),
    default: true,
  },
  openai: open,
  "openai-strict": {
    ...open,
    refDescription: false,
    typeLists: false,
    closed: true,
    emptyProperties: true,
    mostEnumValues: 500,
    untyped: "alternatives",
    limits: new Set([...numberLimits, ...itemLimits, "pattern", "format"]),
    formats: new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    patterns: "no-lookaround",
    default: false,
  },
  anthropic: { ...open, plainNames: true },
  /** The OpenAPI subset of `parameters`, which every version of the Gemini API accepts. */
  gemini: {
    ...open,
    refs: "inline",
    unions: "anyOf-alone",
    nulls: "nullable",
    typeLists: false,
    additional: false,
    enums: "strings",
    mostEnumValues: 500,
    untyped: "string",
    plainNames: true,
    limits: new Set(["minimum", "maximum", "minItems", "maxItems", "format"]),
    formats: new Set(["date-time"]),
    default: false,
  },
  "llama-cpp": {
    ...open,
    refDescription: false,
    typeLists: false,
    mostEnumValues: 500,
    untyped: "alternatives",
    limits: new Set([...numberLimits.slice(0, 4), ...itemLimits, ...stringLimits]),
    formats: new Set(["date", "time", "date-time", "uuid"]),
    patterns: "plain",
    largestBound: 64,
    default: false,
  },
};
