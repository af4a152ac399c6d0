/**
 * Finds references that would keep a validator busy for ever: circles that never descend into the
 * value, and references that fan out, each to several of the next, until no machine could follow.
 * Linear.
 */
import { isObject, type JsonObject } from "../base/json.ts";
import { resolvePointer } from "./subschema.ts";

export type Endless = "leads back to itself" | "fans out beyond reason";

type Node = Record<string, unknown>;

/** How many schemas one value may have to be checked against. Real schemas need some dozens. */
const mostSchemas = 10_000;

interface Visit {
  readonly node: Node;
  readonly next: Iterator<Node>;
  readonly number: number;
  low: number;
}

/**
 * Tarjan's strongly connected components with an explicit stack. What a component leads to is known
 * before it is closed.
 */
export function findEndless(root: JsonObject, nodes: Iterable<Node>): ReadonlyMap<unknown, Endless> {
  const found = new Map<unknown, Endless>();
  const costs = new Map<unknown, number>();
  const visits = new Map<unknown, Visit>();
  const component: Visit[] = [];
  const stack: Visit[] = [];
  const enter = (node: Node) => {
    const visit = { node, next: sameValue(root, node), number: visits.size, low: visits.size };
    visits.set(node, visit);
    stack.push(visit);
    component.push(visit);
  };
  const leave = (top: Visit) => {
    stack.pop();
    const above = stack.at(-1);
    if (above) above.low = Math.min(above.low, top.low);
    if (top.low === top.number) closeComponent(root, component.splice(component.lastIndexOf(top)), costs, found);
  };
  for (const start of nodes) {
    if (typeof start["$ref"] === "string" && !visits.has(start)) enter(start);
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      const { value: to, done } = top.next.next();
      if (done) leave(top);
      else {
        const known = visits.get(to);
        if (!known) enter(to);
        else if (!costs.has(to)) top.low = Math.min(top.low, known.number);
      }
    }
  }
  return found;
}

/** `costs` counts the schemas that a value meets from here on. It also tells which nodes are closed. */
function closeComponent(
  root: JsonObject,
  members: readonly Visit[],
  costs: Map<unknown, number>,
  found: Map<unknown, Endless>,
): void {
  const own = new Set<unknown>(members.map(({ node }) => node));
  const counted = members.map(({ node }) => {
    let cost = 1;
    for (const to of sameValue(root, node)) cost += own.has(to) ? 0 : (costs.get(to) ?? 0);
    return [node, Math.min(cost, mostSchemas + 1)] as const;
  });
  for (const [node, cost] of counted) {
    const ref = node["$ref"];
    if (typeof ref === "string" && own.has(resolvePointer(root, ref))) found.set(node, "leads back to itself");
    else if (typeof ref === "string" && cost > mostSchemas) found.set(node, "fans out beyond reason");
    costs.set(node, cost);
  }
}

/** The schemas that apply to the same value as this one. */
function* sameValue(root: JsonObject, node: Node): Generator<Node, undefined> {
  for (const keyword of ["allOf", "anyOf", "oneOf"]) {
    const list = node[keyword];
    if (Array.isArray(list)) for (const to of list) if (isObject(to)) yield to;
  }
  for (const keyword of ["not", "if", "then", "else"]) {
    const to = node[keyword];
    if (isObject(to)) yield to;
  }
  const to = typeof node["$ref"] === "string" ? resolvePointer(root, node["$ref"]) : undefined;
  if (isObject(to)) yield to;
  return undefined;
}
