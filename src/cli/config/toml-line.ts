/** The line of a TOML file that sets a value, for messages, because the parser does not say where values stood. */
type Path = readonly (string | number)[];

/** The nearest line: the value itself, or the table it is in, or 1 if nothing fits. */
export function lineOf(content: string, path: Path): number {
  const lists = new Map<string, number>();
  let table: Path = [];
  let best = { line: 1, depth: 0 };
  let below: number | undefined;
  for (const [index, line] of content.split("\n").entries()) {
    const read = readLine(line, table, lists);
    if (read === undefined) continue;
    if (read.isHeader) table = read.path;
    if (isPrefix(read.path, path) && read.path.length > best.depth) best = { line: index + 1, depth: read.path.length };
    else if (isPrefix(path, read.path)) below ??= index + 1;
  }
  return best.depth === 0 ? (below ?? 1) : best.line;
}

function readLine(
  line: string,
  table: Path,
  lists: Map<string, number>,
): { readonly path: Path; readonly isHeader: boolean } | undefined {
  const list = /^\s*\[\[(.+?)\]\]/.exec(line);
  if (list) {
    const names = splitKey(list[1]!);
    const number = (lists.get(names.join("\0")) ?? -1) + 1;
    lists.set(names.join("\0"), number);
    return { path: [...names, number], isHeader: true };
  }
  const header = /^\s*\[(.+?)\]\s*(?:#|$)/.exec(line);
  if (header) return { path: splitKey(header[1]!), isHeader: true };
  const key = new RegExp(`^\\s*(${name}(?:\\s*\\.\\s*${name})*)\\s*=`).exec(line);
  return key ? { path: [...table, ...splitKey(key[1]!)], isHeader: false } : undefined;
}

const name = `(?:"(?:[^"\\\\]|\\\\.)*"|'[^']*'|[\\w-]+)`;

function splitKey(key: string): readonly string[] {
  return [...key.matchAll(new RegExp(name, "g"))].map(([word]) => {
    if (word.startsWith("'")) return word.slice(1, -1);
    return word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\(.)/g, "$1") : word;
  });
}

function isPrefix(short: Path, long: Path): boolean {
  return short.length <= long.length && short.every((step, index) => step === long[index]);
}
