/** Derives elements from a turn with two arguments: what is written around the name, each key and each value. */
import type { Block, Dialect, PairsBody, TagPair, TaggedBody } from "../dialect/dialect.ts";
import { one } from "./probe.ts";

export type Blocks = Dialect["blocks"];

const alpha = one[0]!.name;

export function lastMarker(text: string): string {
  const start = Math.max(text.lastIndexOf("<"), text.lastIndexOf("["));
  return start < 0 ? text : text.slice(start);
}

export function firstMarker(text: string): string {
  return /^\s*(?:<[^<>]{1,64}>|\[[^[\]]{1,64}\])/.exec(text)?.[0] ?? text;
}

/** The parts of a turn with two arguments: before the name, to the first key, to its value, to the second key, the rest. */
function partsOf(text: string) {
  const name = text.indexOf(alpha);
  const [firstKey, firstValue] = [text.indexOf("qzpath", name), text.indexOf("qzpathvalue", name + 1)];
  // The value begins with the same letters as the key, so it is looked for after the key.
  const value = firstValue === firstKey ? text.indexOf("qzpathvalue", firstKey + 1) : firstValue;
  const secondValue = text.indexOf("qztextvalue", value);
  const secondKey = text.lastIndexOf("qztext", secondValue - 1);
  if (
    [name, firstKey, value, secondKey, secondValue].some(
      (at, index, all) => at < 0 || (index > 0 && at <= all[index - 1]!),
    )
  )
    return undefined;
  return {
    before: text.slice(0, name),
    toKey: text.slice(name + alpha.length, firstKey),
    toValue: text.slice(firstKey + "qzpath".length, value),
    toNext: text.slice(value + "qzpathvalue".length, secondKey),
    rest: text.slice(secondValue + "qztextvalue".length),
  };
}

export function* elementBlocks(twoArguments: string | undefined): Generator<Blocks> {
  const parts = twoArguments === undefined ? undefined : partsOf(twoArguments);
  if (parts === undefined) return;
  const pairs = /^(<[^<>]+>|<\/[^<>]+>)\s*(<[^<>]+>)\n?$/.exec(parts.toValue);
  if (pairs !== null && !parts.toValue.startsWith(">"))
    yield* pairsBlocks(parts, { close: pairs[1]!, open: pairs[2]! });
  yield* taggedBlocks(parts);
}

type Parts = NonNullable<ReturnType<typeof partsOf>>;

function* pairsBlocks(parts: Parts, between: TagPair): Generator<Blocks> {
  const keyOpen = lastMarker(parts.toKey);
  const separator = parts.toKey.slice(0, parts.toKey.length - keyOpen.length).trim();
  const valueClose = firstMarker(parts.toNext).trim();
  const behind = parts.rest.slice(parts.rest.indexOf(valueClose) + valueClose.length);
  const compact = !parts.toKey.includes("\n");
  const body: PairsBody = {
    kind: "pairs",
    key: { open: keyOpen, close: between.close },
    value: { open: between.open, close: valueClose },
    ...(separator === "" ? {} : { separator }),
    trim: "none",
    compact,
  };
  const callOpen = lastMarker(parts.before).trim();
  const section = parts.before.slice(0, parts.before.lastIndexOf(callOpen)).trim();
  const callClose = firstMarker(behind);
  const sectionClose = behind.slice(callClose.length).trim();
  if (section === "") yield [{ open: [callOpen], close: [behind.trim()], bodies: [body] }];
  else
    yield [
      {
        open: [section],
        close: [sectionClose],
        bodies: [{ ...body, call: { open: callOpen, close: callClose.trim() } }],
      },
    ];
}

function* taggedBlocks(parts: Parts): Generator<Blocks> {
  const end = /(<\|[^<>|]+\|>|>)\n?$/.exec(parts.toValue)?.[1];
  if (end === undefined) return;
  const endAt = parts.toKey.indexOf(end);
  if (endAt < 0) return;
  const parameterOpen = parts.toKey.slice(endAt + end.length).trim();
  const nextOpen = parts.toNext.lastIndexOf(parameterOpen);
  if (parameterOpen === "" || nextOpen < 0) return;
  const line = parts.toValue.endsWith("\n") && parts.toNext.startsWith("\n");
  const parameterClose = parts.toNext.slice(0, nextOpen).trim();
  const callOpen = lastTag(parts.before);
  const behind = parts.rest.slice(parts.rest.indexOf(parameterClose) + parameterClose.length).trim();
  const closes = behind.indexOf(end) + end.length;
  const callClose = behind.slice(0, closes);
  const open = parts.before.slice(0, parts.before.length - callOpen.length).trim();
  const close = behind.slice(closes).trim();
  const body: TaggedBody = {
    kind: "tagged",
    call: [{ open: headOf(callOpen), close: callClose }],
    parameter: [{ open: headOf(parameterOpen), close: parameterClose }],
    ...(end === ">" ? {} : { end }),
    trim: line ? "one-newline" : "none",
    tags: {
      call: `${callOpen}{name}${parts.toKey.slice(0, endAt + end.length)}`,
      parameter: `${parameterOpen}{name}${typed(parts.toValue.trimEnd())}`,
    },
  };
  for (const variant of [body, { ...body, cdata: true }])
    yield open === ""
      ? [{ open: [], close: [], bodies: [{ ...variant, bare: true }] }]
      : [{ open: [open], close: close === "" ? [] : [close], bodies: [variant] } satisfies Block];
}

/** The tag that contains the name, from the tag's first character. */
function lastTag(text: string): string {
  const start = text.lastIndexOf("<");
  const token = /<\|[^<>|]+\|>[^<>]*$/.exec(text)?.index;
  return start < 0 ? "" : text.slice(token ?? start);
}

/** `<function=` and `<invoke name="` without the ending that the reader of headers handles itself. */
function headOf(open: string): string {
  return open.replace(/(?:=|\s+[\w-]+\s*=\s*["']?)$/, "");
}

/** Replaces a type that is written in the markup by a placeholder, because it depends on the value. */
function typed(tag: string): string {
  return tag.replace('"true"', '"{string}"').replace('type="string"', 'type="{type}"').replace('="str"', '="{type}"');
}
