/** The indentation mode of read_file: the block around a line. */
export interface IndentationOptions {
  readonly anchor_line?: number;
  readonly max_levels?: number;
  readonly include_siblings?: boolean;
  readonly include_header?: boolean;
  readonly max_lines?: number;
}

const tabWidth = 4;

/**
 * The block around a line, by indentation. It grows from the line outwards, one line up and one down
 * in turn, as long as they are indented as deep as `max_levels` requires. Lines are counted from 1.
 */
export function indentationBlock(
  lines: readonly string[],
  anchor: number,
  limit: number,
  options: IndentationOptions,
): { readonly first: number; readonly last: number } {
  const count = Math.min(limit, options.max_lines ?? limit, lines.length);
  if (count === 1) return { first: anchor, last: anchor };
  const indents = effectiveIndents(lines);
  const own = indents[anchor - 1]!;
  const levels = options.max_levels ?? 0;
  const minimum = levels === 0 ? 0 : Math.max(0, own - levels * tabWidth);
  const siblings = options.include_siblings === true;
  const up = createSide({ lines, indents, minimum, siblings, header: options.include_header ?? true });
  const down = createSide({ lines, indents, minimum, siblings, header: false });
  let first = anchor - 1;
  let last = anchor - 1;
  while (last - first + 1 < count && (up.open || down.open)) {
    if (up.open && up.take(first - 1)) first--;
    if (last - first + 1 < count && down.open && down.take(last + 1)) last++;
  }
  while (first < last && lines[first]!.trim() === "") first++;
  while (last > first && lines[last]!.trim() === "") last--;
  return { first: first + 1, last: last + 1 };
}

interface SideOptions {
  readonly lines: readonly string[];
  readonly indents: readonly number[];
  readonly minimum: number;
  readonly siblings: boolean;
  readonly header: boolean;
}

/**
 * One direction of growth. It ends at a line that is indented too little, or at a second line of the
 * outermost level.
 */
function createSide({ lines, indents, minimum, siblings, header }: SideOptions) {
  let atMinimum = 0;
  const side = {
    open: true,
    take(index: number): boolean {
      const indent = indents[index];
      if (indent === undefined || indent < minimum) return (side.open = false);
      if (indent === minimum && !siblings) {
        const isHeader = header && /^\s*(?:#|\/\/|--)/.test(lines[index]!);
        if (atMinimum++ > 0 && !isHeader) return (side.open = false);
      }
      return true;
    },
  };
  return side;
}

/** A blank line counts as indented like the line before it. */
function effectiveIndents(lines: readonly string[]): readonly number[] {
  let before = 0;
  return lines.map((line) => {
    if (line.trim() === "") return before;
    before = 0;
    for (const letter of line) {
      if (letter === " ") before++;
      else if (letter === "\t") before += tabWidth;
      else break;
    }
    return before;
  });
}
