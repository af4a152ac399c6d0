/** Parameters with raw text values, written out as one JSON object while they are read. */
import type { CallWriter } from "../calls.ts";
import { escapeText } from "../quoting.ts";
import { isPlainText, normalizeLiteral, textToJson, wantedOf, type Wanted } from "../values.ts";

/** What the markup itself says of a value: text, JSON, or nothing. */
export type Told = "text" | "json" | undefined;

export interface ArgumentsOptions {
  readonly trim: "none" | "one-newline";
  readonly undeclared?: "json" | undefined;
}

export interface Arguments {
  has(name: string): boolean;
  /** The parameter is declared, or nothing is known about the tool's parameters. */
  mayTake(name: string): boolean;
  begin(name: string, told?: Told): ValueSink;
  /** Closes the object. False: a parameter was given twice. */
  finish(): boolean;
}

export interface ValueSink {
  text(piece: string): void;
  end(): void;
}

export function createArguments(writer: CallWriter, options: ArgumentsOptions): Arguments {
  const given = new Set<string>();
  // Repeated elements make up a list, so a list is written when the call ends.
  const lists = new Map<string, string[]>();
  let open = false;
  let twice = false;
  // All arguments inside one parameter of this name: some models wrap them once more.
  let wrapper: { readonly name: string; readonly text: string; readonly told: Told } | undefined;
  const parameters = writer.tool?.parameters;

  function key(name: string): string {
    const prefix = open ? "," : "{";
    open = true;
    return `${prefix}${JSON.stringify(name)}:`;
  }

  function jsonOf(name: string, text: string, wanted: Wanted, told: Told): string {
    if (told === "json") return normalizeLiteral(text, writer.repairs) ?? textToJson(text, wanted, writer.repairs);
    if (told === undefined && wanted === undefined && options.undeclared === "json") {
      return normalizeLiteral(text, writer.repairs) ?? JSON.stringify(text);
    }
    return textToJson(text, wanted, writer.repairs);
  }

  function unwrapped(): string | undefined {
    if (wrapper === undefined || given.size > 1) return undefined;
    const inner = wrapper.text.trim().startsWith("{") ? normalizeLiteral(wrapper.text, writer.repairs) : undefined;
    if (inner !== undefined) writer.repairs.add("wrapped-arguments");
    return inner;
  }

  function end(name: string, text: string, wanted: Wanted, told: Told): void {
    if (isWrapper(name, wanted)) {
      wrapper = { name, text, told };
      return;
    }
    const json = jsonOf(name, text, wanted, told);
    const list = lists.get(name);
    if (list !== undefined) list.push(json);
    else if (isList(wanted)) lists.set(name, [json]);
    else writer.write(key(name) + json);
  }

  return {
    has: (name) => given.has(name),
    mayTake: (name) => parameters === undefined || wantedOf(parameters, name) !== undefined,
    begin(name, told) {
      const wanted = wantedOf(parameters, name);
      if (given.has(name) && !isList(wanted)) twice = true;
      given.add(name);
      const plain =
        told === "text"
          ? wanted === undefined || wanted === "any" || wanted.has("string")
          : told === undefined && isPlainText(wanted);
      const streams = plain && !twice && !(wanted === undefined && told === undefined && options.undeclared === "json");
      return streams && !isWrapper(name, wanted) ? streamed(name) : buffered(name, wanted, told);
    },
    finish() {
      const inner = unwrapped();
      if (inner !== undefined) {
        writer.write(inner);
        return !twice;
      }
      if (wrapper !== undefined)
        writer.write(key(wrapper.name) + jsonOf(wrapper.name, wrapper.text, undefined, wrapper.told));
      for (const [name, items] of lists) writer.write(key(name) + joinList(items));
      writer.write(open ? "}" : "{}");
      return !twice;
    },
  };

  function isWrapper(name: string, wanted: Wanted): boolean {
    return (name === "arguments" || name === "input") && wanted === undefined && parameters !== undefined;
  }

  function streamed(name: string): ValueSink {
    const trimmed = createTrim(options.trim, (text) => writer.write(escapeText(text)));
    writer.write(`${key(name)}"`);
    return {
      text: trimmed.text,
      end() {
        trimmed.end();
        writer.write('"');
      },
    };
  }

  function buffered(name: string, wanted: Wanted, told: Told): ValueSink {
    let text = "";
    const trimmed = createTrim(options.trim, (piece) => (text += piece));
    return {
      text: trimmed.text,
      end() {
        trimmed.end();
        end(name, text, wanted, told);
      },
    };
  }
}

function isList(wanted: Wanted): boolean {
  return wanted !== undefined && wanted !== "any" && wanted.has("array") && !wanted.has("string");
}

/** One value that is a list already stays it; several values become one. */
function joinList(items: readonly string[]): string {
  return items.length === 1 ? items[0]! : `[${items.join(",")}]`;
}

/** Takes one line end off either side, or nothing. */
function createTrim(trim: "none" | "one-newline", out: (text: string) => void): ValueSink {
  if (trim === "none") return { text: out, end: () => {} };
  let first = true;
  let held = "";
  return {
    text(piece) {
      if (piece === "") return;
      let text = held + piece;
      held = "";
      if (first && text.startsWith("\n")) text = text.slice(1);
      first = false;
      if (text.endsWith("\n")) {
        held = "\n";
        text = text.slice(0, -1);
      }
      if (text !== "") out(text);
    },
    end: () => {},
  };
}
