/** `${NAME}` and `${NAME:-otherwise}` in a server's settings, as the common form has them. */
import { isObject } from "../base/json.ts";

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Only programs and addresses. Names of tools and variables stay as they are. */
const expandedKeys = new Set(["command", "args", "env", "cwd", "url", "httpUrl", "headers", "http_headers"]);

export function expandSettings(
  entry: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): { readonly entry: Record<string, unknown>; readonly missing: readonly string[] } {
  const missing = new Set<string>();
  const expand = (value: unknown): unknown => {
    if (typeof value === "string")
      return value.replaceAll(reference, (_whole, name: string, otherwise: string | undefined) => {
        const found = env[name] ?? otherwise;
        if (found === undefined) missing.add(name);
        return found ?? "";
      });
    if (Array.isArray(value)) return value.map(expand);
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, expand(inner)]));
  };
  const pairs = Object.entries(entry).map(([key, value]) => [key, expandedKeys.has(key) ? expand(value) : value]);
  return { entry: Object.fromEntries(pairs), missing: [...missing] };
}
