/** Parameters with raw text values, written out as one JSON object while they are read. */
import type { CallWriter } from "../calls.ts";
import { escapeText } from "../quoting.ts";
import type { Notes } from "../repairs.ts";
import { isPlainText, normalizeLiteral, textToJson, wantedOf, type Wanted } from "../values.ts";

/** What the markup itself says about a value: text, JSON, or nothing. */
export type Told = "text" | "json" | undefined;

export interface ArgumentsOptions {
  readonly trim: "none" | "one-newline";
  readonly undeclared?: "json" | undefined;
}

export interface Arguments {
  has(name: string): boolean;
  /** The parameter is declared, or nothing is known about the tool's parameters. */
  mayTake(name: string): boolean;
  /** A parameter that is given again replaces the first one, or makes a list with it. */
  begin(name: string, told?: Told): ValueSink;
  /** Writes the end of the JSON object. */
  finish(): void;
}

export interface ValueSink {
  text(piece: string): void;
  end(): void;
}

export function createArguments(writer: CallWriter, options: ArgumentsOptions): Arguments {
  /** How each text begins. That is enough for a word that decides what other parameters may be. */
  const given = new Map<string, string>();
  // Repeated elements make up a list, so a list is written when the call ends.
  const lists = new Map<string, string[]>();
  let open = false;
  // Some models put all arguments into one parameter of this name.
  let wrapper: { readonly name: string; readonly text: string; readonly told: Told } | undefined;
  const parameters = writer.tool?.parameters;

  function key(name: string): string {
    const prefix = open ? "," : "{";
    open = true;
    return `${prefix}${JSON.stringify(name)}:`;
  }

  function jsonOf(given: string, wanted: Wanted, told: Told): string {
    const text = wanted === undefined || isPlainText(wanted) ? given : unwrapValue(given, writer.repairs);
    const isJson = told === "json" || (told === undefined && wanted === undefined && options.undeclared === "json");
    const json = isJson ? normalizeLiteral(text, writer.repairs) : undefined;
    // The schema counts more than the markup: if the value must be text and is not a JSON string, it is the text
    // itself.
    return json !== undefined && (wanted === undefined || !isPlainText(wanted) || json.startsWith('"'))
      ? json
      : textToJson(text, wanted, writer.repairs);
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
    const json = jsonOf(text, wanted, told);
    const list = lists.get(name);
    if (list !== undefined) list.push(json);
    else if (isList(wanted)) lists.set(name, [json]);
    else writer.write(key(name) + json);
  }

  return {
    has: (name) => given.has(name),
    mayTake: (name) => parameters === undefined || wantedOf(parameters, name) !== undefined,
    begin(name, told) {
      const wanted = wantedOf(parameters, name, given);
      if (given.has(name) && !isList(wanted)) writer.repairs.add("duplicate-argument");
      given.set(name, "");
      const plain =
        told === "text"
          ? wanted === undefined || wanted === "any" || wanted.has("string")
          : told === undefined && isPlainText(wanted);
      const streams = plain && !(wanted === undefined && told === undefined && options.undeclared === "json");
      return streams && !isWrapper(name, wanted) ? streamed(name) : buffered(name, wanted, told);
    },
    finish() {
      const inner = unwrapped();
      if (inner !== undefined) return writer.write(inner);
      if (wrapper !== undefined) writer.write(key(wrapper.name) + jsonOf(wrapper.text, undefined, wrapper.told));
      for (const [name, items] of lists) writer.write(key(name) + joinList(items));
      writer.write(open ? "}" : "{}");
    },
  };

  function isWrapper(name: string, wanted: Wanted): boolean {
    return wrappers.has(name) && wanted === undefined && parameters !== undefined;
  }

  function note(name: string, piece: string): void {
    const before = given.get(name) ?? "";
    if (before.length <= decidingWord) given.set(name, before + piece.slice(0, decidingWord + 1));
  }

  function streamed(name: string): ValueSink {
    const trimmed = createTrim(options.trim, (text) => {
      note(name, text);
      writer.write(escapeText(text));
    });
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
    const trimmed = createTrim(options.trim, (piece) => {
      note(name, piece);
      text += piece;
    });
    return {
      text: trimmed.text,
      end() {
        trimmed.end();
        end(name, text, wanted, told);
      },
    };
  }
}

const decidingWord = 64;

/** Names under which models put all arguments at once. */
const wrappers: ReadonlySet<string> = new Set(["arguments", "input", "properties"]);

/** Some models put `<value>` around a value that is not text: `<value>0.8</value>`. */
function unwrapValue(text: string, notes: Notes): string {
  const word = text.trim();
  if (!word.startsWith("<value>") || !word.endsWith("</value>")) return text;
  notes.add("value-wrapper");
  return word.slice("<value>".length, -"</value>".length);
}

function isList(wanted: Wanted): boolean {
  return wanted !== undefined && wanted !== "any" && wanted.has("array") && !wanted.has("string");
}

/** A single value that is already a list stays one. Several values become a list. */
function joinList(items: readonly string[]): string {
  return items.length === 1 ? items[0]! : `[${items.join(",")}]`;
}

/** Removes one line end on either side, or nothing. */
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
