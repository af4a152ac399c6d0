/** Whether a literal command is known to be harmless, that is, whether it only reads, and where. */
import type { Judgement } from "./found.ts";
import { parseOptions } from "./options.ts";
import { readers, type Reader } from "./readers.ts";
import { specials } from "./specials.ts";

export function judge(name: string, args: readonly string[]): Judgement {
  const special = specials.get(name);
  if (special !== undefined) return special(args);
  const reader = readers.get(name);
  return reader === undefined ? { why: `${name} is not known to be harmless` } : judgeReader(name, args, reader);
}

function judgeReader(name: string, args: readonly string[], reader: Reader): Judgement {
  const parsed = parseOptions(args, reader);
  if ("unknown" in parsed) return { why: `${name} ${parsed.unknown} is not known to be harmless` };
  const { options, operands } = parsed;
  const fromOptions = options.flatMap((option) =>
    reader.pathOptions?.includes(option.name) ? [option.value ?? ""] : [],
  );
  const hasText = options.some((option) => reader.textOptions?.includes(option.name));
  const paths = operandPaths(operands, hasText, reader);
  if (paths === undefined) return { why: `${name} with these operands is not known to be harmless` };
  const reads = [...fromOptions, ...paths].filter((path) => path !== "-");
  const deep = name === "diff" || (name.endsWith("grep") && options.some(isRecursive));
  if (!deep) return { reads };
  return { reads, below: { folders: paths.length === 0 ? ["."] : paths, hidden: true } };
}

/** grep's -r, and -d with any value except the two that do not descend; values may be abbreviated. */
function isRecursive({ name, value }: { readonly name: string; readonly value: string | undefined }): boolean {
  if (name === "d" || name === "directories") return value !== "read" && value !== "skip";
  return name === "r" || name === "recursive";
}

function operandPaths(operands: readonly string[], hasText: boolean, reader: Reader): readonly string[] | undefined {
  switch (reader.operands ?? "paths") {
    case "paths":
      return operands;
    case "text":
      return [];
    case "none":
      return operands.length === 0 ? [] : undefined;
    case "one-path":
      return operands.length <= 1 ? operands : undefined;
    case "text-then-paths":
      return hasText ? operands : operands.slice(1);
  }
}
