/** A tool's input that is text, under a grammar or none. The handler receives the string as the model wrote it. */
export interface Freeform {
  readonly kind: "freeform";
  readonly syntax?: "lark" | "regex";
  readonly definition?: string;
  /** What the text is called where a wire needs a name for it. */
  readonly label?: string;
  /** The grammar only guides the model: the handler reads the text itself, forgives more, and says better what is wrong. */
  readonly unchecked?: boolean;
}

export function freeform(
  grammar: { syntax?: "lark" | "regex"; definition?: string; label?: string; unchecked?: boolean } = {},
): Freeform {
  if ((grammar.syntax === undefined) !== (grammar.definition === undefined)) {
    throw new TypeError("freeform: give both syntax ('lark' or 'regex') and definition, or neither");
  }
  return { kind: "freeform", ...grammar };
}

export function isFreeform(schema: unknown): schema is Freeform {
  return typeof schema === "object" && schema !== null && (schema as { kind?: unknown }).kind === "freeform";
}
