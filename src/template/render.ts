/**
 * Renders a chat template. The folder `template/` finds out from a model's own template how the model
 * speaks: which dialect its calls are in, how prompts and results look, and where an answer begins. It is
 * pure and knows the dialects, but no transport.
 */
import { block, createScope } from "./evaluate.ts";
import { createMeter, TemplateError, type Meter, type TemplateLimits } from "./limits.ts";
import { parseTemplate, type ParsedTemplate } from "./parse.ts";
import {
  Callable,
  isNumber,
  itemsOf,
  isDict,
  isList,
  Namespace,
  print,
  runtime,
  toNumber,
  toValue,
  type Value,
} from "./value.ts";

/** What a template is given: `messages`, `tools`, `add_generation_prompt`, tokens, switches. */
export interface TemplateContext {
  readonly [name: string]: unknown;
  /** The time that `strftime_now` reads. By default the present. */
  readonly now?: Date;
}

/** Renders a chat template within limits of work, depth and length. */
export function renderTemplate(
  template: string | ParsedTemplate,
  context: TemplateContext,
  limits: TemplateLimits = {},
): string {
  const parsed = typeof template === "string" ? parseTemplate(template, limits) : template;
  return renderMetered(parsed, context, createMeter(limits, Date.now));
}

/** Like `renderTemplate`, but counted by a meter that the caller gives. */
export function renderMetered({ program }: ParsedTemplate, context: TemplateContext, meter: Meter): string {
  const { now = new Date(), ...given } = context;
  try {
    const scope = createScope(meter, undefined, globals(meter, now));
    for (const [name, value] of Object.entries(given)) scope.names.set(name, toValue(value, meter));
    return block(program.type === "Program" ? program.body : [program], createScope(meter, scope));
  } catch (error) {
    if (error instanceof TemplateError) throw error;
    // A hostile template can still exceed JavaScript's own limits on the stack or on the size of a value.
    if (error instanceof RangeError)
      throw new TemplateError("limit", "the template asks for too much: nesting or size");
    throw new TemplateError("runtime", "the template breaks off in the middle of nothing it could break off");
  }
}

function globals(meter: Meter, now: Date): Iterable<readonly [string, Value]> {
  const functions: Readonly<Record<string, Callable>> = {
    raise_exception: new Callable(({ list }) => {
      throw new TemplateError("refused", print(list[0], meter));
    }),
    range: new Callable(({ list }) => range(list, meter)),
    namespace: new Callable(({ list, named }) => {
      const fields = new Map<string, Value>();
      const [first] = list;
      if (isDict(first)) for (const [key, value] of first) fields.set(print(key, meter), value);
      for (const [key, value] of named) fields.set(key, value);
      return new Namespace(fields);
    }),
    strftime_now: new Callable(({ list }) => strftime(now, print(list[0], meter))),
    dict: new Callable(({ list, named }) => {
      const [first] = list;
      const pairs = isDict(first) ? [...first] : itemsOf(first, meter).map((pair) => (isList(pair) ? pair : []));
      return new Map<Value, Value>([...pairs.map(([key, value]) => [key, value] as const), ...named]);
    }),
  };
  return [
    ...Object.entries(functions),
    ["true", true],
    ["false", false],
    ["none", null],
    ["True", true],
    ["False", false],
    ["None", null],
  ];
}

function range(list: readonly Value[], meter: Meter): Value {
  const numbers = list.map((value) => {
    if (!isNumber(value)) throw runtime("range() wants numbers");
    return Math.trunc(toNumber(value));
  });
  const [start, stop, step = 1] =
    numbers.length === 1 ? [0, numbers[0]!] : [numbers[0] ?? 0, numbers[1] ?? 0, numbers[2]];
  if (step === 0) throw runtime("range() cannot step by 0");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  meter.entries(length);
  return Array.from({ length }, (_none, index) => start + index * step);
}

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = "January February March April May June July August September October November December".split(" ");

function strftime(date: Date, format: string): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = days[date.getDay()]!;
  const month = months[date.getMonth()]!;
  const parts: Readonly<Record<string, string>> = {
    Y: String(date.getFullYear()),
    y: two(date.getFullYear() % 100),
    m: two(date.getMonth() + 1),
    d: two(date.getDate()),
    H: two(date.getHours()),
    I: two(date.getHours() % 12 || 12),
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    p: date.getHours() < 12 ? "AM" : "PM",
    A: day,
    a: day.slice(0, 3),
    B: month,
    b: month.slice(0, 3),
    "%": "%",
  };
  return format.replace(/%(-?)([A-Za-z%])/g, (whole, plain: string, letter: string) => {
    const value = Object.hasOwn(parts, letter) ? parts[letter]! : whole;
    return plain === "-" ? value.replace(/^0(?=\d)/, "") : value;
  });
}
