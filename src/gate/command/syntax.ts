/** Small questions about pieces of the syntax tree. */
import type { Command, ParameterExpansionPart, SyntaxNode, TestExpression } from "unbash";

export const commandTypes: ReadonlySet<string> = new Set([
  "Command",
  "AndOr",
  "Pipeline",
  "Subshell",
  "BraceGroup",
  "CompoundList",
  "Redirected",
  "Function",
]);

/** The name, for a message, of a construct that is not followed. */
export function construct(type: string): string {
  const names = new Map([
    ["ArithmeticCommand", "arithmetic can evaluate"],
    ["Coproc", "it starts a coprocess"],
  ]);
  return names.get(type) ?? `it has control flow (${type.toLowerCase()})`;
}

/** Builtins that set or read variables by name, and evaluate subscripts in the name. */
const evaluating: ReadonlySet<string> = new Set(
  "let declare typeset local export readonly unset read mapfile readarray printf test [ wait set eval getopts".split(
    " ",
  ),
);

const setting = new Set(
  "declare typeset local export readonly unset read mapfile readarray getopts eval source .".split(" "),
);

/** Whether this builtin may give a variable another value. */
export function setsVariables([name = "", first = ""]: readonly string[]): boolean {
  return setting.has(name) || (name === "printf" && first.startsWith("-"));
}

/** Every conversion must be one that only prints: `%n`, with any length modifier, sets a variable. */
export const plainFormat =
  /^(?:[^%]|%%|%[-+ 0#']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:[diouxXcsbqQeEfFgGaA]|\([^()]*\)T))*$/;

/** Whether this builtin, with these words, evaluates a name or a number that may hold code. */
export function evaluates([name = "", ...args]: readonly string[]): boolean {
  if (!evaluating.has(name)) return false;
  if (name === "export" || name === "readonly") return args.some((arg) => !/^[A-Za-z_]\w*(\+?=|$)/.test(arg));
  if (name === "printf") return /^[-"]|[$`]/.test(args[0] ?? "$") || !plainFormat.test(args[0] ?? "");
  if (name === "test" || name === "[")
    return args.some((arg) => arg === "-v" || arg === "-R" || /^-(eq|ne|lt|le|gt|ge)$|[$`]/.test(arg));
  return true;
}

/** The parser accepts a `(` after a command's name, which bash refuses. */
export function hasStrayParenthesis(node: Command, source: string | undefined): boolean {
  if (source === undefined || node.name === undefined) return false;
  const [next] = node.suffix;
  const between = source.slice(node.name.end, next === undefined ? node.end : next.pos);
  return between.includes("(") || /^[ \t]*\(/.test(source.slice(node.end, node.end + 200));
}

/** `$((x))`, `${x@P}`, `${!x}`, `${a[i]}`, `${x:i}`: the value is evaluated, not only inserted. */
export function isEvaluating(node: SyntaxNode): boolean {
  return node.type === "ArithmeticExpansion" || (node.type === "ParameterExpansion" && isLooking(node));
}

function isLooking(part: ParameterExpansionPart): boolean {
  return (
    part.prefix === "!" ||
    part.index !== undefined ||
    part.operation?.type === "Transform" ||
    part.operation?.type === "Slice"
  );
}

/** File tests and comparisons of literal words, which evaluate nothing. */
export function isPlainTest(test: TestExpression): boolean {
  switch (test.type) {
    case "TestUnary":
      return /^-[abcdefghkprstuwxGLNOSnz]$/.test(test.operator) && test.operand.parts === undefined;
    case "TestBinary":
      return (
        ["=", "==", "!="].includes(test.operator) && test.left.parts === undefined && test.right.parts === undefined
      );
    case "TestLogical":
      return test.operands.every(isPlainTest);
    case "TestNot":
      return isPlainTest(test.operand);
    case "TestGroup":
      return isPlainTest(test.expression);
  }
}
