/** Python's two ways to fill values into a text: `str.format` and `%`. */
import type { Meter } from "./limits.ts";
import {
  counted,
  Float,
  isDict,
  isList,
  isNumber,
  print,
  repr,
  toNumber,
  type Arguments,
  type Value,
} from "./value.ts";

/**
 * `str.format` with `{}`, `{0}`, `{name}` and `{x.y}`. Of the formats after `:` only the number of digits
 * is supported.
 */
export function formatBraces(self: string, args: Arguments, meter: Meter): string {
  let next = 0;
  const filled = self.replace(/\{\{|\}\}|\{([^{}]{0,200})\}/g, (match, field: string | undefined) => {
    if (field === undefined) return match.charAt(0);
    const [path = "", spec = ""] = field.split(":", 2);
    const [head = "", ...rest] = path.split(/[.[\]]+/).filter((part, index) => part !== "" || index === 0);
    let value: Value =
      head === "" ? args.list[next++] : /^\d+$/.test(head) ? args.list[Number(head)] : args.named.get(head);
    for (const key of rest) value = isDict(value) ? value.get(key) : isList(value) ? value[Number(key)] : undefined;
    return formatted(value, spec, meter);
  });
  return counted(filled, meter);
}

/** Python's `%` operator with `%s`, `%d`, `%.2f` and similar formats. */
export function formatPercent(format: string, given: Value, meter: Meter): string {
  const list = isList(given) ? given : [given];
  let next = 0;
  const filled = format.replace(
    /%(?:\((\w{1,64})\))?(\d{0,4})(?:\.(\d{1,2}))?([sdifrx%])/g,
    (_match, key: string | undefined, width: string, digits: string | undefined, kind: string) => {
      if (kind === "%") return "%";
      const value = key === undefined ? list[next++] : isDict(given) ? given.get(key) : undefined;
      const number = isNumber(value) ? toNumber(value) : Number.NaN;
      const shown =
        kind === "r"
          ? repr(value, meter)
          : kind === "f"
            ? number.toFixed(Number(digits ?? 6))
            : kind === "d" || kind === "i"
              ? String(Math.trunc(number))
              : kind === "x"
                ? Math.trunc(number).toString(16)
                : print(value, meter);
      return shown.padStart(Number(width || 0), width.startsWith("0") ? "0" : " ");
    },
  );
  return counted(filled, meter);
}

function formatted(value: Value, spec: string, meter: Meter): string {
  const digits = /^\.(\d{1,2})f$/.exec(spec)?.[1];
  if (digits !== undefined && isNumber(value)) return toNumber(value).toFixed(Number(digits));
  const padding = /^(0?)(\d{1,4})d?$/.exec(spec);
  const shown = value instanceof Float ? repr(value, meter) : print(value, meter);
  return padding === null ? shown : shown.padStart(Number(padding[2]), padding[1] === "0" ? "0" : " ");
}
