/**
 * Secrets do not leave the machine: known values are replaced by placeholders in everything that is
 * sent to a model, and put back in the calls it makes, so that commands still work. The same value
 * always has the same placeholder, so that prompt caches hit.
 */
import { createHmac } from "node:crypto";
import type { Part } from "../base/content.ts";
import type { CallItem, Item, ModelEvent, ModelRequest } from "../spec/model.ts";

export interface Secrets {
  hide(request: ModelRequest): ModelRequest;
  /** Whether a body contains one, as it came or as it was read, because it may be escaped in more than one way. */
  holds(body: string, request: ModelRequest): boolean;
  reveal(event: ModelEvent): ModelEvent | undefined;
}

/** A shorter value would be found inside ordinary words. */
const minLength = 8;

export function createSecrets(values: readonly string[], key: string): Secrets | undefined {
  const known = [...new Set(values)]
    .filter((value) => value.length >= minLength)
    .toSorted((a, b) => b.length - a.length);
  if (known.length === 0) return undefined;
  const originals = new Map(known.map((value) => [placeholderFor(value, key), value]));
  // A value with quotes or line breaks also occurs as JSON writes it: in arguments, and in JSON files that are shown.
  const placeholders = new Map(
    [...originals].flatMap(([placeholder, value]) => [
      [value, placeholder],
      [JSON.stringify(value).slice(1, -1), placeholder],
    ]),
  );
  const pattern = new RegExp([...placeholders.keys()].map(escape).join("|"), "g");

  const hideText = (text: string) => text.replace(pattern, (value) => placeholders.get(value) ?? value);
  const hidePart = (part: Part): Part => (part.type === "text" ? { ...part, text: hideText(part.text) } : part);
  const hideItem = (item: Item): Item => {
    switch (item.type) {
      case "message":
      case "result":
        return { ...item, content: item.content.map(hidePart) };
      case "call":
        return { ...item, arguments: hideText(item.arguments) };
      default:
        return item;
    }
  };
  const holdsItem = (item: Item): boolean => {
    if (item.type === "call") return item.arguments.search(pattern) >= 0;
    if (item.type !== "message" && item.type !== "result") return false;
    return item.content.some((part) => part.type === "text" && part.text.search(pattern) >= 0);
  };
  /** In the JSON of arguments a value is escaped as JSON requires. */
  const revealCall = (call: CallItem): CallItem => {
    const isJson = call.kind !== "custom";
    const put = (placeholder: string) => {
      const value = originals.get(placeholder) ?? placeholder;
      return isJson ? JSON.stringify(value).slice(1, -1) : value;
    };
    return { ...call, arguments: call.arguments.replaceAll(/\[secret:[0-9a-f]{12}\]/g, put) };
  };

  return {
    hide: (request) => ({
      ...request,
      ...(request.instructions === undefined ? {} : { instructions: hideText(request.instructions) }),
      input: request.input.map(hideItem),
    }),
    holds: (body, { instructions = "", input }) =>
      body.search(pattern) >= 0 || instructions.search(pattern) >= 0 || input.some(holdsItem),
    reveal(event) {
      // A placeholder may be split over two deltas. The whole call contains it, and encoders wait for that anyway.
      if (event.type === "item.delta" && event.field === "arguments") return undefined;
      if (event.type !== "item.done" || event.item.type !== "call") return event;
      return { ...event, item: revealCall(event.item) };
    },
  };
}

function placeholderFor(value: string, key: string): string {
  return `[secret:${createHmac("sha256", key).update(value).digest("hex").slice(0, 12)}]`;
}

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

const secretName = /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:$|_)/i;

/** The values of variables whose names say that they are secret, for `startGateway({ secrets })`. */
export function secretsOf(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (value !== undefined && secretName.test(name) ? [value] : []));
}
