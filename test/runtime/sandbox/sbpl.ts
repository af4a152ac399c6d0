/** Reads a Seatbelt profile and decides single operations by it, so that profiles can be tested on any system. */
type Expression = string | { readonly pattern: string } | { readonly text: string } | readonly Expression[];

export interface Attempt {
  readonly operation: string;
  readonly path?: string;
  /** `host:port` of a connection. */
  readonly ip?: string;
  /** Path of a unix socket. */
  readonly socket?: string;
}

export function decide(
  profile: string,
  parameters: Readonly<Record<string, string>>,
  attempt: Attempt,
): "allow" | "deny" {
  let verdict: "allow" | "deny" = "deny";
  for (const rule of parse(profile)) {
    if (!Array.isArray(rule) || (rule[0] !== "allow" && rule[0] !== "deny")) continue;
    const operations = rule.slice(1).filter((part) => typeof part === "string");
    const filters = rule.slice(1).filter((part) => Array.isArray(part)) as (readonly Expression[])[];
    if (!operations.some((name) => covers(name, attempt.operation))) continue;
    if (filters.length === 0 || filters.some((filter) => matches(filter, parameters, attempt))) verdict = rule[0];
  }
  return verdict;
}

function covers(rule: string, operation: string): boolean {
  return rule === "default" || rule === operation || (rule.endsWith("*") && operation.startsWith(rule.slice(0, -1)));
}

function matches(
  [name, ...rest]: readonly Expression[],
  parameters: Readonly<Record<string, string>>,
  attempt: Attempt,
): boolean {
  const value = () => textOf(rest[0], parameters);
  const { path, ip, socket } = attempt;
  switch (name) {
    case "subpath":
      return path !== undefined && isBelow(value(), path);
    case "literal":
      return path === value();
    case "regex":
      return path !== undefined && new RegExp((rest[0] as { readonly pattern: string }).pattern).test(path);
    case "remote":
    case "local":
      if (rest[0] === "ip") return ip !== undefined && ip === textOf(rest[1], parameters);
      return (
        socket !== undefined && matches(rest[1] as readonly Expression[], parameters, { ...attempt, path: socket })
      );
    case "target":
    case "global-name":
      return false;
    default:
      throw new Error(`the evaluator does not know ${String(name)}`);
  }
}

function textOf(expression: Expression | undefined, parameters: Readonly<Record<string, string>>): string {
  if (typeof expression === "object" && "text" in expression) return expression.text;
  if (!Array.isArray(expression) || expression[0] !== "param") throw new Error("neither a text nor a parameter");
  const key = (expression[1] as { readonly text: string }).text;
  const value = parameters[key];
  if (value === undefined) throw new Error(`no such parameter: ${key}`);
  return value;
}

function isBelow(folder: string, path: string): boolean {
  return folder === "/" || path === folder || path.startsWith(`${folder}/`);
}

export function parse(source: string): readonly Expression[] {
  const tokens = source.match(/#"[^"]*"|"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+/g) ?? [];
  const stack: Expression[][] = [[]];
  for (const token of tokens) {
    if (token === "(") stack.push([]);
    else if (token === ")") {
      const done = stack.pop();
      if (done === undefined || stack.length === 0) throw new Error("one ) too many");
      stack.at(-1)!.push(done);
    } else stack.at(-1)!.push(toAtom(token));
  }
  if (stack.length !== 1) throw new Error("a ( was never closed");
  return stack[0]!;
}

function toAtom(token: string): Expression {
  if (token.startsWith('#"')) return { pattern: token.slice(2, -1) };
  return token.startsWith('"') ? { text: JSON.parse(token) as string } : token;
}
