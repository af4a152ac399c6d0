/** Methods of strings, lists and objects, as Python has them. */
import { dictMethods, listMethods, whole, type Method } from "./container-methods.ts";
import { formatBraces } from "./format.ts";
import type { Meter } from "./limits.ts";
import {
  Callable,
  counted,
  isDict,
  isList,
  itemsOf,
  print,
  runtime,
  typeOf,
  type Arguments,
  type Value,
} from "./value.ts";

/** The method of that name, bound to the value, or undefined if the value has none. */
export function methodOf(value: Value, name: string, meter: Meter): Callable | undefined {
  const bind = <T>(self: T, method: Method<T> | undefined) =>
    method === undefined ? undefined : new Callable((args) => method(self, args, meter));
  if (typeof value === "string") return bind(value, stringMethods.get(name));
  if (isDict(value)) return bind(value, dictMethods.get(name));
  // A template's lists were made by it or converted for it. Nobody else holds them, so they may be changed in place.
  if (isList(value)) return bind(value as Value[], listMethods.get(name));
  return undefined;
}

function text(args: Arguments, at: number, name: string, otherwise?: string): string {
  const value = args.list[at] ?? args.named.get(name);
  if (value === undefined || value === null) {
    if (otherwise !== undefined) return otherwise;
    throw runtime(`the argument '${name}' is missing`);
  }
  if (typeof value !== "string") throw runtime(`the argument '${name}' is ${typeOf(value)}, not a string`);
  return value;
}

export function strip(self: string, characters: string | undefined, left: boolean, right: boolean): string {
  const drop = (char: string) => (characters === undefined ? /\s/.test(char) : characters.includes(char));
  let from = 0;
  let to = self.length;
  if (left) while (from < to && drop(self[from]!)) from++;
  if (right) while (to > from && drop(self[to - 1]!)) to--;
  return self.slice(from, to);
}

function stripping(left: boolean, right: boolean): Method<string> {
  return (self, args) =>
    strip(self, args.list.length === 0 || args.list[0] === null ? undefined : text(args, 0, "chars"), left, right);
}

/** One or several endings or beginnings. */
function matching(fits: (self: string, part: string) => boolean): Method<string> {
  return (self, args) => {
    const [part] = args.list;
    const parts = isList(part) ? part : [part];
    return parts.some((one) => {
      if (typeof one !== "string") throw runtime(`a string is compared with ${typeOf(one)}`);
      return fits(self, one);
    });
  };
}

export function replaceText(self: string, from: string, to: string, count: number, meter: Meter): string {
  if (from === "") {
    const characters = Array.from(self);
    meter.characters((characters.length + 1) * to.length + self.length);
    return to + characters.map((character) => character + to).join("");
  }
  let result = "";
  let at = 0;
  const most = count < 0 ? Number.POSITIVE_INFINITY : count;
  for (let done = 0; done < most; done++) {
    const found = self.indexOf(from, at);
    if (found < 0) break;
    meter.characters(found - at + to.length);
    meter.step();
    result += self.slice(at, found) + to;
    at = found + from.length;
  }
  return counted(result + self.slice(at), meter);
}

export function split(
  self: string,
  separator: string | undefined,
  most: number,
  fromRight: boolean,
  meter: Meter,
): readonly string[] {
  if (separator === "") throw runtime("a string cannot be split at nothing");
  const parts =
    separator === undefined
      ? self
          .trim()
          .split(/\s+/)
          .filter((part) => part !== "")
      : self.split(separator);
  meter.entries(parts.length);
  if (most < 0 || parts.length <= most + 1) return parts;
  const glue = separator ?? " ";
  return fromRight
    ? [parts.slice(0, parts.length - most).join(glue), ...parts.slice(parts.length - most)]
    : [...parts.slice(0, most), parts.slice(most).join(glue)];
}

function titleCase(self: string): string {
  return self.toLowerCase().replace(/\p{L}+/gu, (word) => word.charAt(0).toUpperCase() + word.slice(1));
}

export function capitalize(self: string): string {
  return self.charAt(0).toUpperCase() + self.slice(1).toLowerCase();
}

const stringMethods: ReadonlyMap<string, Method<string>> = new Map<string, Method<string>>([
  ["strip", stripping(true, true)],
  ["lstrip", stripping(true, false)],
  ["rstrip", stripping(false, true)],
  ["upper", (self) => self.toUpperCase()],
  ["lower", (self) => self.toLowerCase()],
  ["title", titleCase],
  ["capitalize", capitalize],
  ["startswith", matching((self, part) => self.startsWith(part))],
  ["endswith", matching((self, part) => self.endsWith(part))],
  [
    "removeprefix",
    (self, args) => (self.startsWith(text(args, 0, "prefix")) ? self.slice(text(args, 0, "prefix").length) : self),
  ],
  [
    "removesuffix",
    (self, args) => {
      const suffix = text(args, 0, "suffix");
      return suffix !== "" && self.endsWith(suffix) ? self.slice(0, -suffix.length) : self;
    },
  ],
  [
    "split",
    (self, args, meter) =>
      split(
        self,
        args.list[0] === undefined && !args.named.has("sep") ? undefined : text(args, 0, "sep"),
        whole(args, 1, "maxsplit", -1),
        false,
        meter,
      ),
  ],
  [
    "rsplit",
    (self, args, meter) =>
      split(
        self,
        args.list[0] === undefined && !args.named.has("sep") ? undefined : text(args, 0, "sep"),
        whole(args, 1, "maxsplit", -1),
        true,
        meter,
      ),
  ],
  [
    "splitlines",
    (self, _args, meter) => {
      const lines = self.split(/\r\n|\r|\n/);
      if (lines.at(-1) === "") lines.pop();
      meter.entries(lines.length);
      return lines;
    },
  ],
  [
    "partition",
    (self, args) => {
      const mark = text(args, 0, "sep");
      const at = self.indexOf(mark);
      return at < 0 ? [self, "", ""] : [self.slice(0, at), mark, self.slice(at + mark.length)];
    },
  ],
  [
    "rpartition",
    (self, args) => {
      const mark = text(args, 0, "sep");
      const at = self.lastIndexOf(mark);
      return at < 0 ? ["", "", self] : [self.slice(0, at), mark, self.slice(at + mark.length)];
    },
  ],
  [
    "replace",
    (self, args, meter) =>
      replaceText(self, text(args, 0, "old"), text(args, 1, "new"), whole(args, 2, "count", -1), meter),
  ],
  ["join", (self, args, meter) => joinText(itemsOf(args.list[0], meter), self, meter)],
  ["find", (self, args) => self.indexOf(text(args, 0, "sub"))],
  ["rfind", (self, args) => self.lastIndexOf(text(args, 0, "sub"))],
  [
    "index",
    (self, args) => {
      const at = self.indexOf(text(args, 0, "sub"));
      if (at < 0) throw runtime("the part looked for is not in the string");
      return at;
    },
  ],
  ["count", (self, args) => self.split(text(args, 0, "sub")).length - 1],
  ["isdigit", (self) => /^\d+$/.test(self)],
  ["isnumeric", (self) => /^\d+$/.test(self)],
  ["isalpha", (self) => /^\p{L}+$/u.test(self)],
  ["isalnum", (self) => /^[\p{L}\d]+$/u.test(self)],
  ["isspace", (self) => /^\s+$/.test(self)],
  ["isupper", (self) => self !== self.toLowerCase() && self === self.toUpperCase()],
  ["islower", (self) => self !== self.toUpperCase() && self === self.toLowerCase()],
  ["format", (self, args, meter) => formatBraces(self, args, meter)],
  ["zfill", (self, args, meter) => counted(padded(self, whole(args, 0, "width", 0), "0", true, meter), meter)],
  [
    "ljust",
    (self, args, meter) => padded(self, whole(args, 0, "width", 0), text(args, 1, "fillchar", " "), false, meter),
  ],
  [
    "rjust",
    (self, args, meter) => padded(self, whole(args, 0, "width", 0), text(args, 1, "fillchar", " "), true, meter),
  ],
]);

function padded(self: string, width: number, fill: string, left: boolean, meter: Meter): string {
  meter.characters(Math.max(0, width));
  return left ? self.padStart(width, fill) : self.padEnd(width, fill);
}

export function joinText(items: readonly Value[], separator: string, meter: Meter): string {
  meter.characters(separator.length * items.length);
  const parts = items.map((item) => print(item, meter));
  meter.characters(parts.reduce((sum, part) => sum + part.length, 0));
  return parts.join(separator);
}
