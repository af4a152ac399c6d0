/** Reads SQL just far enough to tell reading from writing, and one statement from two. */
import { CallError } from "../../../index.ts";

/** What matters about a statement, read from its words without strings and comments. */
export interface Statement {
  readonly verb: string;
  readonly words: ReadonlySet<string>;
  /** Words followed by a parenthesis, which are mostly functions. */
  readonly calls: ReadonlySet<string>;
  /** Where the `?` placeholders stand in the text. */
  readonly placeholders: readonly number[];
}

/**
 * Strings, quoted names, comments and dollar quotes, in which nothing is a word of the statement. One
 * that never ends extends to the end, so that its rest is not tried again from every position.
 */
const token =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*(?:\]|$)|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|(\$\w*\$)[\s\S]*?(?:\1|$)|[A-Za-z_]\w*|[;?]/g;

const readVerbs = new Set(["select", "with", "values", "explain", "pragma", "show", "table"]);
/** Statements and functions that reach other files, or leave the database. */
const outwardVerbs = new Set(["attach", "detach", "copy", "load"]);
const outwardCalls = [
  "load_extension",
  "readfile",
  "writefile",
  "edit",
  "fts3_tokenizer",
  "lo_import",
  "lo_export",
  "pg_read_file",
  "pg_read_binary_file",
  "pg_ls_dir",
  "dblink",
  "dblink_exec",
];

/** One statement, or a CallError, because a harmless statement could bring along a second one. */
export function readStatement(sql: string): Statement {
  const words: string[] = [];
  const calls = new Set<string>();
  const placeholders: number[] = [];
  let ended = false;
  for (const match of sql.matchAll(token)) {
    const [text] = match;
    if (/^['"`[$]|^--|^\/\*/.test(text)) continue;
    if (text === ";") {
      ended = true;
      continue;
    }
    if (ended) throw new CallError("invalid_input", "One statement a call, please: something follows the ';'.");
    if (text === "?") {
      placeholders.push(match.index);
      continue;
    }
    words.push(text.toLowerCase());
    if (/^\s*\(/.test(sql.slice(match.index + text.length, match.index + text.length + 100)))
      calls.add(text.toLowerCase());
  }
  const verb = words[0];
  if (verb === undefined || !/^(?:--[^\n]*\n|\/\*[\s\S]*?\*\/|\s|\()*[A-Za-z]/.test(sql)) {
    throw new CallError("invalid_input", "There is no SQL statement in sql.");
  }
  return { verb, words: new Set(words), calls, placeholders };
}

/** Throws unless the statement only reads. The connection is read-only as well; this gives a clear answer. */
export function requireReading(statement: Statement): void {
  const { verb, words } = statement;
  // `with … delete` and `explain analyze delete` write although they begin like a query.
  const hidden =
    verb === "with" || verb === "explain" ? ["insert", "update", "delete"].find((word) => words.has(word)) : undefined;
  if (!readVerbs.has(verb) || hidden !== undefined) {
    throw new CallError(
      "invalid_input",
      `internal_database_query only reads; this statement says ${(hidden ?? verb).toUpperCase()}.`,
      {
        hint: "Use internal_database_update for changes.",
      },
    );
  }
  requireInside(statement);
}

export function requireWriting(statement: Statement): void {
  if (["select", "values", "explain", "show"].includes(statement.verb)) {
    throw new CallError("invalid_input", "internal_database_update is for changes; this statement only reads.", {
      hint: "Use internal_database_query.",
    });
  }
  requireInside(statement);
}

function requireInside({ verb, words, calls }: Statement): void {
  const isVacuumInto = verb === "vacuum" && words.has("into");
  const outward = outwardVerbs.has(verb) || isVacuumInto ? verb : outwardCalls.find((name) => calls.has(name));
  if (outward) throw new CallError("denied", `${outward.toUpperCase()} reaches outside the database and is not run.`);
}

/** Values in place of the placeholders, quoted; for drivers that take no parameters. */
export function inlineParameters(sql: string, { placeholders }: Statement, values: readonly SqlValue[]): string {
  let result = "";
  let from = 0;
  for (const [index, at] of placeholders.entries()) {
    result += sql.slice(from, at) + quote(values[index] ?? null);
    from = at + 1;
  }
  return result + sql.slice(from);
}

export type SqlValue = string | number | boolean | null;

function quote(value: SqlValue): string {
  if (value === null) return "NULL";
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  return String(typeof value === "boolean" ? Number(value) : value);
}
