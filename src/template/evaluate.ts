/** Evaluates the nodes of a template. Values are the plain data of `value.ts`, and every step is counted. */
import { findFilter } from "./filters.ts";
import { findTest } from "./tests.ts";
import type { Meter } from "./limits.ts";
import { arithmetic, concat, unary } from "./operators.ts";
import { methodOf } from "./methods.ts";
import type {
  BinaryNode,
  CallNode,
  CallStatementNode,
  ForNode,
  IdentifierNode,
  MacroNode,
  MemberNode,
  Node,
  SetNode,
} from "./parse.ts";
import {
  Callable,
  compare,
  contains,
  counted,
  float,
  isDict,
  isEqual,
  isList,
  isNumber,
  isTrue,
  itemsOf,
  Namespace,
  print,
  runtime,
  slice,
  toNumber,
  typeOf,
  type Arguments,
  type Value,
} from "./value.ts";

/** The names that are visible in a loop, in a macro or in the whole template. */
export interface Scope {
  readonly meter: Meter;
  readonly names: Map<string, Value>;
  readonly parent?: Scope | undefined;
}

export function createScope(meter: Meter, parent?: Scope, names: Iterable<readonly [string, Value]> = []): Scope {
  return { meter, names: new Map(names), parent };
}

function find(scope: Scope, name: string): Value {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    if (at.names.has(name)) return at.names.get(name);
  }
  return undefined;
}

/** Carries `break` and `continue` to the loop that they belong to. */
class LoopExit {
  readonly stops: boolean;
  constructor(stops: boolean) {
    this.stops = stops;
  }
}

export function block(nodes: readonly Node[], scope: Scope): string {
  let text = "";
  for (const node of nodes) {
    const piece = statement(node, scope);
    if (piece === "") continue;
    scope.meter.characters(piece.length);
    text += piece;
  }
  return text;
}

/** What a node of a block prints. */
function statement(node: Node, scope: Scope): string {
  switch (node.type) {
    case "If":
      return block(isTrue(evaluate(node.test, scope)) ? node.body : node.alternate, scope);
    case "For":
      return loop(node, scope);
    case "Set":
      assign(node, scope);
      return "";
    case "Macro":
      scope.names.set(node.name.value, macro(node, scope));
      return "";
    case "CallStatement":
      return callBlock(node, scope);
    case "FilterStatement":
      return print(filtered(block(node.body, scope), node.filter, scope), scope.meter);
    case "Break":
    case "Continue":
      // The surrounding loop catches this, so nobody sees it as an error.
      throw new LoopExit(node.type === "Break");
    case "Comment":
      return "";
    default:
      return print(evaluate(node, scope), scope.meter);
  }
}

function evaluate(node: Node | undefined, scope: Scope): Value {
  if (node === undefined) return undefined;
  scope.meter.step();
  scope.meter.enter();
  const value = valueOf(node, scope);
  scope.meter.leave();
  return value;
}

function valueOf(node: Node, scope: Scope): Value {
  switch (node.type) {
    case "IntegerLiteral":
    case "StringLiteral":
      return node.value;
    case "FloatLiteral":
      return float(node.value);
    case "ArrayLiteral":
    case "TupleLiteral":
      scope.meter.entries(node.value.length);
      return node.value.map((item) => evaluate(item, scope));
    case "ObjectLiteral":
      scope.meter.entries(node.value.size);
      return new Map(Array.from(node.value, ([key, value]) => [evaluate(key, scope), evaluate(value, scope)] as const));
    case "Identifier":
      return find(scope, node.value);
    case "MemberExpression":
      return member(node, scope);
    case "CallExpression":
      return called(node, scope);
    case "UnaryExpression":
      return unary(node.operator.value, evaluate(node.argument, scope));
    case "BinaryExpression":
      return binary(node, scope);
    case "FilterExpression":
      return filtered(evaluate(node.operand, scope), node.filter, scope);
    case "TestExpression":
      return findTest(node.test.value)(evaluate(node.operand, scope), []) !== node.negate;
    case "SelectExpression":
      return isTrue(evaluate(node.test, scope)) ? evaluate(node.lhs, scope) : undefined;
    case "Ternary":
      return evaluate(isTrue(evaluate(node.condition, scope)) ? node.trueExpr : node.falseExpr, scope);
    default:
      return statement(node, scope);
  }
}

function filtered(value: Value, filter: IdentifierNode | CallNode, scope: Scope): Value {
  const name =
    filter.type === "Identifier" ? filter.value : filter.callee.type === "Identifier" ? filter.callee.value : "";
  const args = filter.type === "Identifier" ? noArguments : argumentsOf(filter.args, scope);
  const test = /^is (not )?(.+)$/.exec(name);
  if (test) return findTest(test[2]!)(value, args.list) !== (test[1] !== undefined);
  return findFilter(name)(value, args, scope.meter);
}

function argumentsOf(nodes: readonly Node[], scope: Scope): Arguments {
  const list: Value[] = [];
  const named = new Map<string, Value>();
  for (const node of nodes) {
    if (node.type === "KeywordArgumentExpression") named.set(node.key.value, evaluate(node.value, scope));
    else if (node.type === "SpreadExpression") list.push(...itemsOf(evaluate(node.argument, scope), scope.meter));
    else if (node.type === "KeywordSpreadExpression") {
      const given = evaluate(node.argument, scope);
      if (!isDict(given)) throw runtime(`${typeOf(given)} cannot be given as named arguments`);
      for (const [key, value] of given) named.set(print(key, scope.meter), value);
    } else list.push(evaluate(node, scope));
  }
  return { list, named };
}

function called(node: CallNode, scope: Scope): Value {
  const { callee } = node;
  // A method is looked up before a key of the same name, because a schema may have a key called `items`.
  const method =
    callee.type === "MemberExpression" && !callee.computed && callee.property.type === "Identifier"
      ? methodFor(callee, callee.property.value, scope)
      : undefined;
  const target = method ?? evaluate(callee, scope);
  if (!(target instanceof Callable)) throw runtime(`${nameOf(callee)} is ${typeOf(target)}, not a function`);
  return target.call(argumentsOf(node.args, scope));
}

function methodFor(callee: MemberNode, name: string, scope: Scope): Callable | undefined {
  const object = evaluate(callee.object, scope);
  if (object instanceof Namespace) return undefined;
  const own = isDict(object) ? object.get(name) : undefined;
  if (own instanceof Callable) return own;
  if (object === undefined || object === null)
    throw runtime(`${nameOf(callee.object)} is ${typeOf(object)} and has no '${name}'`);
  return methodOf(object, name, scope.meter);
}

function member(node: MemberNode, scope: Scope): Value {
  const object = evaluate(node.object, scope);
  if (node.computed && node.property.type === "SliceExpression") {
    const { start, stop, step } = node.property;
    const bound = (part: Node | undefined) => {
      const value = evaluate(part, scope);
      return isNumber(value) ? Math.trunc(toNumber(value)) : undefined;
    };
    const items = typeof object === "string" ? Array.from(object) : isList(object) ? object : undefined;
    if (items === undefined) throw runtime(`${typeOf(object)} cannot be sliced`);
    const part = slice<Value>(items, bound(start), bound(stop), bound(step));
    scope.meter.entries(part.length);
    return typeof object === "string" ? part.join("") : part;
  }
  const key = node.computed
    ? evaluate(node.property, scope)
    : node.property.type === "Identifier"
      ? node.property.value
      : evaluate(node.property, scope);
  return field(object, key, node, scope);
}

function field(object: Value, key: Value, node: MemberNode, scope: Scope): Value {
  if (object === undefined) throw runtime(`${nameOf(node.object)} is undefined, so it has no ${JSON.stringify(key)}`);
  if (isDict(object))
    return object.has(key)
      ? object.get(key)
      : typeof key === "string" && !node.computed
        ? methodOf(object, key, scope.meter)
        : undefined;
  if (object instanceof Namespace) return typeof key === "string" ? object.fields.get(key) : undefined;
  if (isNumber(key) && (isList(object) || typeof object === "string")) {
    const found = object.at(Math.trunc(toNumber(key)));
    return found;
  }
  return typeof key === "string" ? methodOf(object, key, scope.meter) : undefined;
}

function binary(node: BinaryNode, scope: Scope): Value {
  const operator = node.operator.value;
  const left = evaluate(node.left, scope);
  if (operator === "and") return isTrue(left) ? evaluate(node.right, scope) : left;
  if (operator === "or") return isTrue(left) ? left : evaluate(node.right, scope);
  const right = evaluate(node.right, scope);
  switch (operator) {
    case "==":
      return isEqual(left, right);
    case "!=":
      return !isEqual(left, right);
    case "in":
      return contains(right, left);
    case "not in":
      return !contains(right, left);
    case "~":
      return concat(print(left, scope.meter), print(right, scope.meter), scope.meter);
    case "<":
      return compare(left, right) < 0;
    case ">":
      return compare(left, right) > 0;
    case "<=":
      return compare(left, right) <= 0;
    case ">=":
      return compare(left, right) >= 0;
    default:
      return arithmetic(operator, left, right, scope.meter);
  }
}

function assign(node: SetNode, scope: Scope): void {
  const value = node.value ? evaluate(node.value, scope) : counted(block(node.body, scope), scope.meter);
  const { assignee } = node;
  if (assignee.type === "MemberExpression") {
    const object = evaluate(assignee.object, scope);
    if (!(object instanceof Namespace) || assignee.property.type !== "Identifier")
      throw runtime(`only fields of a namespace can be set, not of ${typeOf(object)}`);
    object.fields.set(assignee.property.value, value);
  } else bind(assignee, value, scope);
}

/** `a` or `a, b` on the left of `set` and `for`. */
function bind(target: Node, value: Value, scope: Scope): void {
  if (target.type === "Identifier") scope.names.set(target.value, value);
  else if (target.type === "TupleLiteral") {
    const items = itemsOf(value, scope.meter);
    if (items.length !== target.value.length)
      throw runtime(`${items.length} values cannot be taken apart into ${target.value.length} names`);
    target.value.forEach((inner, index) => bind(inner, items[index], scope));
  } else throw runtime("nothing can be assigned there");
}

function loop(node: ForNode, scope: Scope): string {
  const select = node.iterable.type === "SelectExpression" ? node.iterable : undefined;
  const all = itemsOf(evaluate(select?.lhs ?? node.iterable, scope), scope.meter);
  const items =
    select === undefined
      ? all
      : all.filter((item) => {
          const inner = createScope(scope.meter, scope);
          bind(node.loopvar, item, inner);
          return isTrue(evaluate(select.test, inner));
        });
  if (items.length === 0) return block(node.defaultBlock, createScope(scope.meter, scope));
  let text = "";
  for (let index = 0; index < items.length; index++) {
    scope.meter.step();
    const inner = createScope(scope.meter, scope);
    inner.names.set("loop", loopOf(items, index));
    bind(node.loopvar, items[index], inner);
    try {
      text += block(node.body, inner);
    } catch (exit) {
      if (!(exit instanceof LoopExit)) throw exit;
      if (exit.stops) break;
    }
  }
  return text;
}

function macro(node: Pick<MacroNode, "args" | "body">, scope: Scope): Callable {
  return new Callable((args) => {
    scope.meter.enter();
    const inner = createScope(scope.meter, scope);
    const named = new Map(args.named);
    node.args.forEach((parameter, index) => {
      const isKeyword = parameter.type === "KeywordArgumentExpression";
      const name = isKeyword ? parameter.key.value : parameter.type === "Identifier" ? parameter.value : "";
      const given = index < args.list.length ? args.list[index] : named.get(name);
      const missing = index >= args.list.length && !named.has(name);
      inner.names.set(name, missing && isKeyword ? evaluate(parameter.value, inner) : given);
      named.delete(name);
    });
    if (named.has("caller")) inner.names.set("caller", named.get("caller"));
    inner.names.set("kwargs", new Map(named));
    inner.names.set("varargs", args.list.slice(node.args.length));
    const text = block(node.body, inner);
    scope.meter.leave();
    return text;
  });
}

function callBlock(node: CallStatementNode, scope: Scope): string {
  const target = evaluate(node.call.callee, scope);
  if (!(target instanceof Callable)) throw runtime(`${nameOf(node.call.callee)} is not a macro`);
  const args = argumentsOf(node.call.args, scope);
  const caller = macro({ args: node.callerArgs ?? [], body: node.body }, scope);
  return print(target.call({ ...args, named: new Map([...args.named, ["caller", caller]]) }), scope.meter);
}

const noArguments: Arguments = { list: [], named: new Map() };

function loopOf(items: readonly Value[], index: number): Value {
  return new Map<Value, Value>([
    ["index", index + 1],
    ["index0", index],
    ["revindex", items.length - index],
    ["revindex0", items.length - index - 1],
    ["first", index === 0],
    ["last", index === items.length - 1],
    ["length", items.length],
    ["previtem", items[index - 1]],
    ["nextitem", items[index + 1]],
    ["cycle", new Callable(({ list }) => list[index % Math.max(1, list.length)])],
  ]);
}

/** A node as a person would name it. */
function nameOf(node: Node): string {
  if (node.type === "Identifier") return `'${node.value}'`;
  if (node.type === "MemberExpression" && node.property.type === "Identifier") return `'${node.property.value}'`;
  return "the value";
}
