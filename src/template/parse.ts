/** Jinja's syntax, parsed by `@huggingface/jinja`. What the nodes mean is defined in `evaluate.ts`. */
import { parse, tokenize } from "@huggingface/jinja";
import { defaultLimits, TemplateError, type TemplateLimits } from "./limits.ts";

/** A node of a parsed template. */
export type Node =
  | { readonly type: "Program"; readonly body: readonly Node[] }
  | { readonly type: "If"; readonly test: Node; readonly body: readonly Node[]; readonly alternate: readonly Node[] }
  | ForNode
  | SetNode
  | MacroNode
  | CallStatementNode
  | { readonly type: "FilterStatement"; readonly filter: IdentifierNode | CallNode; readonly body: readonly Node[] }
  | { readonly type: "Break" | "Continue" | "Comment" }
  | { readonly type: "IntegerLiteral" | "FloatLiteral"; readonly value: number }
  | { readonly type: "StringLiteral"; readonly value: string }
  | { readonly type: "ArrayLiteral" | "TupleLiteral"; readonly value: readonly Node[] }
  | { readonly type: "ObjectLiteral"; readonly value: ReadonlyMap<Node, Node> }
  | IdentifierNode
  | CallNode
  | MemberNode
  | SliceNode
  | { readonly type: "KeywordArgumentExpression"; readonly key: IdentifierNode; readonly value: Node }
  | { readonly type: "SpreadExpression" | "KeywordSpreadExpression"; readonly argument: Node }
  | { readonly type: "UnaryExpression"; readonly operator: { readonly value: string }; readonly argument: Node }
  | BinaryNode
  | { readonly type: "FilterExpression"; readonly operand: Node; readonly filter: IdentifierNode | CallNode }
  | { readonly type: "TestExpression"; readonly operand: Node; readonly negate: boolean; readonly test: IdentifierNode }
  | { readonly type: "SelectExpression"; readonly lhs: Node; readonly test: Node }
  | { readonly type: "Ternary"; readonly condition: Node; readonly trueExpr: Node; readonly falseExpr: Node };

/** A name. */
export interface IdentifierNode {
  readonly type: "Identifier";
  readonly value: string;
}

/** A call of a function or macro. */
export interface CallNode {
  readonly type: "CallExpression";
  readonly callee: Node;
  readonly args: readonly Node[];
}

/** A field or an item of a value. */
export interface MemberNode {
  readonly type: "MemberExpression";
  readonly object: Node;
  readonly property: Node;
  readonly computed: boolean;
}

/** A part of a list or string. */
export interface SliceNode {
  readonly type: "SliceExpression";
  readonly start?: Node;
  readonly stop?: Node;
  readonly step?: Node;
}

/** Two values and the operator between them. */
export interface BinaryNode {
  readonly type: "BinaryExpression";
  readonly operator: { readonly value: string };
  readonly left: Node;
  readonly right: Node;
}

/** A loop. */
export interface ForNode {
  readonly type: "For";
  readonly loopvar: Node;
  readonly iterable: Node;
  readonly body: readonly Node[];
  readonly defaultBlock: readonly Node[];
}

/** An assignment. */
export interface SetNode {
  readonly type: "Set";
  readonly assignee: Node;
  readonly value: Node | null;
  readonly body: readonly Node[];
}

/** A macro. */
export interface MacroNode {
  readonly type: "Macro";
  readonly name: IdentifierNode;
  readonly args: readonly Node[];
  readonly body: readonly Node[];
}

/** A `{% call %}` block. */
export interface CallStatementNode {
  readonly type: "CallStatement";
  readonly call: CallNode;
  readonly callerArgs: readonly Node[] | null;
  readonly body: readonly Node[];
}

/** A template that is parsed once and can be rendered often. */
export interface ParsedTemplate {
  readonly program: Node;
}

/** White space longer than this makes the reader's patterns slow, and no honest template has it. */
const longestSpace = 4096;

/** Parses a Jinja chat template. */
export function parseTemplate(source: string, limits: TemplateLimits = {}): ParsedTemplate {
  const longest = limits.source ?? defaultLimits.source;
  if (source.length > longest) throw new TemplateError("limit", `the template is longer than ${longest} characters`);
  if (new RegExp(`\\s{${longestSpace}}`).test(source))
    throw new TemplateError("limit", `the template has more than ${longestSpace} spaces in a row`);
  try {
    const tokens = withTests(
      withExponents(tokenize(source.replaceAll("\r\n", "\n"), { lstrip_blocks: true, trim_blocks: true })),
    );
    return { program: parse(tokens) };
  } catch (error) {
    if (error instanceof RangeError) throw new TemplateError("limit", "the template nests too deeply to be read");
    throw new TemplateError(
      "syntax",
      `the template is no Jinja: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

type Token = ReturnType<typeof tokenize>[number];

/** The tokenizer ends `1e3` after the 1. Between a number and a word nothing else may stand, so the pieces belong together. */
function withExponents(tokens: readonly Token[]): readonly Token[] {
  const result: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    const [letter, sign, digits] = [tokens[at + 1], tokens[at + 2], tokens[at + 3]];
    const isNumber = token.type === "NumericLiteral" && letter?.type === "Identifier";
    const isSigned =
      isNumber && /^e$/i.test(letter.value) && /^[+-]$/.test(sign?.value ?? "") && digits?.type === "NumericLiteral";
    if (!isSigned && !(isNumber && /^e\d+$/i.test(letter.value))) {
      result.push(token);
      continue;
    }
    const exponent = isSigned ? `e${sign?.value}${digits.value}` : letter.value;
    // With a point in it, the parser takes it for a float.
    result.push({ ...token, value: `${token.value.includes(".") ? token.value : `${token.value}.0`}${exponent}` });
    at += isSigned ? 3 : 1;
  }
  return result;
}

/** Tests whose argument may stand without parentheses. */
const withArgument: ReadonlySet<string> = new Set(
  "sameas eq equalto ne divisibleby gt greaterthan ge lt lessthan le".split(" "),
);
const primaries: ReadonlySet<string> = new Set(["Identifier", "StringLiteral", "NumericLiteral"]);

/**
 * The parser knows tests without arguments only. `x is divisibleby(2)` and `x is divisibleby 2` become the filter
 * `x|is divisibleby(2)`, and `x is in y` is `x in y`.
 */
function withTests(tokens: readonly Token[]): Token[] {
  const result: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    const negated = tokens[at + 1]?.value === "not";
    const name = tokens[negated ? at + 2 : at + 1];
    const next = tokens[negated ? at + 3 : at + 2];
    const isTest = token.type === "Identifier" && token.value === "is" && name?.type === "Identifier";
    const isBare = next !== undefined && withArgument.has(name?.value ?? "") && primaries.has(next.type);
    if (isTest && name.value === "in") {
      result.push(...(negated ? [tokens[at + 1]!, name] : [name]));
      at += negated ? 2 : 1;
    } else if (isTest && (next?.type === "OpenParen" || isBare)) {
      const called = { ...name, value: `is ${negated ? "not " : ""}${name.value}` };
      result.push({ ...token, type: "Pipe", value: "|" }, called);
      at += negated ? 2 : 1;
      if (!isBare) continue;
      result.push({ ...name, type: "OpenParen", value: "(" }, next, { ...name, type: "CloseParen", value: ")" });
      at++;
    } else result.push(token);
  }
  return result;
}
