/** Methods of lists and objects, as Python has them. */
import type { Meter } from "./limits.ts";
import {
  isDict,
  isNumber,
  itemsOf,
  runtime,
  toNumber,
  typeOf,
  type Arguments,
  type Dict,
  type Value,
} from "./value.ts";

export type Method<T> = (self: T, args: Arguments, meter: Meter) => Value;

export function whole(args: Arguments, at: number, name: string, otherwise: number): number {
  const value = args.list[at] ?? args.named.get(name);
  if (value === undefined || value === null) return otherwise;
  if (!isNumber(value)) throw runtime(`the argument '${name}' is ${typeOf(value)}, not a number`);
  return Math.trunc(toNumber(value));
}

function pairs(self: Dict, meter: Meter): readonly Value[] {
  meter.entries(self.size);
  return Array.from(self, ([key, value]) => [key, value]);
}

export const dictMethods: ReadonlyMap<string, Method<Dict>> = new Map<string, Method<Dict>>([
  [
    "get",
    (self, args) =>
      self.has(args.list[0]) ? self.get(args.list[0]) : (args.list[1] ?? args.named.get("default") ?? null),
  ],
  ["items", (self, _args, meter) => pairs(self, meter)],
  ["keys", (self, _args, meter) => itemsOf(self, meter)],
  [
    "values",
    (self, _args, meter) => {
      meter.entries(self.size);
      return [...self.values()];
    },
  ],
  [
    "copy",
    (self, _args, meter) => {
      meter.entries(self.size);
      return new Map(self);
    },
  ],
  [
    "pop",
    (self, args) => {
      const value = self.get(args.list[0]);
      if (!self.delete(args.list[0]) && args.list.length < 2) throw runtime("the key to take out is not there");
      return value ?? args.list[1];
    },
  ],
  [
    "update",
    (self, args, meter) => {
      const [other] = args.list;
      const entries = [...(isDict(other) ? other : []), ...args.named];
      meter.entries(self.size + entries.length);
      for (const [key, value] of entries) self.set(key, value);
      return null;
    },
  ],
  [
    "setdefault",
    (self, args) => {
      if (!self.has(args.list[0])) self.set(args.list[0], args.list[1] ?? null);
      return self.get(args.list[0]);
    },
  ],
]);

export const listMethods: ReadonlyMap<string, Method<Value[]>> = new Map<string, Method<Value[]>>([
  [
    "append",
    (self, args, meter) => {
      meter.entries(1);
      if (self.length >= 100_000) meter.entries(self.length + 1);
      self.push(args.list[0]);
      return null;
    },
  ],
  [
    "extend",
    (self, args, meter) => {
      const items = itemsOf(args.list[0], meter);
      meter.entries(self.length + items.length);
      self.push(...items);
      return null;
    },
  ],
  [
    "insert",
    (self, args, meter) => {
      meter.entries(self.length + 1);
      self.splice(whole(args, 0, "index", 0), 0, args.list[1]);
      return null;
    },
  ],
  [
    "pop",
    (self, args) => {
      if (self.length === 0) throw runtime("nothing can be taken out of an empty list");
      return self.splice(whole(args, 0, "index", -1), 1)[0];
    },
  ],
  ["index", (self, args) => self.indexOf(args.list[0])],
  ["count", (self, args) => self.filter((item) => item === args.list[0]).length],
  [
    "copy",
    (self, _args, meter) => {
      meter.entries(self.length);
      return [...self];
    },
  ],
  [
    "reverse",
    (self) => {
      self.reverse();
      return null;
    },
  ],
]);
