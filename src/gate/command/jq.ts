/** jq filters that read nothing but their input. Every name in them must be a known one. */

const builtins = new Set(
  [
    "empty error not and or if then elif else end as reduce foreach try catch label break def true false null",
    "length utf8bytelength keys keys_unsorted values has in map map_values path paths leaf_paths del to_entries from_entries with_entries select recurse recurse_down",
    "arrays objects iterables booleans numbers nulls strings scalars infinite nan isinfinite isnan isnormal isvalid isempty sort sort_by group_by min max min_by max_by unique unique_by reverse contains inside",
    "add any all flatten range floor ceil round sqrt pow log exp log2 exp2 log10 exp10 fabs trunc abs tostring tonumber tojson fromjson type toarray",
    "startswith endswith ltrimstr rtrimstr trimstr trim ltrim rtrim explode implode split splits join ascii ascii_downcase ascii_upcase while repeat until test match capture scan sub gsub combinations walk transpose first last nth limit skip",
    "input inputs input_line_number debug stderr halt halt_error getpath setpath delpaths pick tostream fromstream truncate_stream indices index rindex IN INDEX bsearch",
    "now mktime gmtime localtime strftime strflocaltime strptime todate fromdate date dateadd datesub fromdateiso8601 todateiso8601",
  ].flatMap((line) => line.split(" ")),
);

/** Names that reach beyond the input, however they are used. */
const reaching = new Set(["env", "import", "include", "input_filename", "modulemeta", "get_search_list"]);

const maxLength = 20_000;

export function isPlainJq(filter: string): boolean {
  if (filter.length > maxLength) return false;
  const names: Names = { defined: new Set(), used: [] };
  return readFilter(filter, 0, names, 0) === filter.length && names.used.every((name) => isKnown(name, names));
}

interface Names {
  /** Functions that the filter defines, and their parameters. */
  readonly defined: Set<string>;
  readonly used: string[];
}

function isKnown(name: string, names: Names): boolean {
  return builtins.has(name) || names.defined.has(name);
}

const token =
  /\s+|#[^\n\\]*(?=\n|$)|\.(?=[A-Za-z_])[A-Za-z_]\w*|\$(?!ENV\b|__)[A-Za-z_]\w*|@[a-z0-9]+|\.\.|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+|([A-Za-z_]\w*)|[-+*/%=<>!|,.:;?[\]{}]|\/\/=?/y;

/**
 * The position where the filter ends: the end of the text, or the parenthesis that closes an
 * interpolation. -1 if it is not understood.
 */
function readFilter(text: string, from: number, names: Names, depth: number): number {
  if (depth > 50) return -1;
  let previous = "";
  let open = 0;
  for (let at = from; at < text.length;) {
    const char = text[at]!;
    if (char === '"') {
      at = readString(text, at + 1, names, depth);
      if (at < 0) return -1;
      continue;
    }
    if (char === "(") {
      open++;
      at++;
      continue;
    }
    if (char === ")") {
      if (open === 0) return depth > 0 ? at : -1;
      open--;
      at++;
      continue;
    }
    token.lastIndex = at;
    const match = token.exec(text);
    if (match === null) return -1;
    at = token.lastIndex;
    const [whole, name] = match;
    if (name !== undefined) {
      if (reaching.has(name)) return -1;
      if (previous === "def") {
        names.defined.add(name);
        const [, parameters = ""] = /^\(([\w$;\s]*)\)/.exec(text.slice(at, at + 200)) ?? [];
        for (const [parameter] of parameters.matchAll(/\w+/g)) names.defined.add(parameter);
      }
      // `{name: …}` is a key.
      else if (!/^\s*:/.test(text.slice(at, at + 20))) names.used.push(name);
    }
    if (whole.trim() !== "") previous = whole;
  }
  return depth === 0 && open === 0 ? text.length : -1;
}

/** The position after the closing quote, or -1 if there is none. `\(…)` holds a filter. */
function readString(text: string, from: number, names: Names, depth: number): number {
  for (let at = from; at < text.length; at++) {
    const char = text[at]!;
    if (char === '"') return at + 1;
    if (char !== "\\") continue;
    if (text[at + 1] !== "(") {
      at++;
      continue;
    }
    const end = readFilter(text, at + 2, names, depth + 1);
    if (end < 0) return -1;
    at = end;
  }
  return -1;
}
