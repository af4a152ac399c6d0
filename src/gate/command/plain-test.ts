import type { TestExpression } from "unbash";

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
