/** A tool's input that is text, with or without a grammar. The handler receives the string as the model wrote it. */
export interface Freeform {
  readonly kind: "freeform";
  /** A `regex` is checked before the handler runs. A `lark` grammar guides models that sample under one. */
  readonly syntax?: "lark" | "regex";
  readonly definition?: string;
  /** The name of the text, for wires that need one. */
  readonly label?: string;
}

/** An input schema for tools that take plain text instead of JSON, optionally with a grammar. */
export function freeform(grammar: { syntax?: "lark" | "regex"; definition?: string; label?: string } = {}): Freeform {
  if ((grammar.syntax === undefined) !== (grammar.definition === undefined)) {
    throw new TypeError("freeform: give both syntax ('lark' or 'regex') and definition, or neither");
  }
  return { kind: "freeform", ...grammar };
}

export function isFreeform(schema: unknown): schema is Freeform {
  return typeof schema === "object" && schema !== null && (schema as { kind?: unknown }).kind === "freeform";
}
