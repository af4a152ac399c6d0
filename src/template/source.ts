/** Where a chat template is kept: tokenizer files of Hugging Face, GGUF files, a llama.cpp server's `/props`, plain Jinja. */
import { isObject } from "../base/json.ts";
import { TemplateError } from "./limits.ts";
import type { SpecialTokens } from "./probe.ts";

/** A template and the file or answer that it was found in. */
export interface TemplateSource {
  readonly template: string;
  readonly tokens: SpecialTokens;
  /** What it was found in. */
  readonly kind: "tokenizer" | "gguf" | "props" | "jinja";
}

/** The chat template in a file of any kind that holds one, or undefined if it holds none. A Go template of Ollama is refused with an error that says so. */
export function readTemplateSource(data: string | Uint8Array): TemplateSource | undefined {
  if (typeof data !== "string") {
    if (isGguf(data)) return fromGguf(data);
    return readTemplateSource(new TextDecoder().decode(data));
  }
  const text = data.replace(/^\uFEFF/, "");
  if (text.trimStart().startsWith("{") && /"chat_template(?:_tool_use)?"\s*:/.test(text)) return fromJson(text);
  if (isGo(text))
    throw new TemplateError(
      "syntax",
      "this is a Go template, as Ollama writes them; give the model's own Jinja template (tokenizer_config.json or chat_template.jinja of its repository)",
    );
  return isJinja(text) ? { template: text, tokens: {}, kind: "jinja" } : undefined;
}

function isJinja(text: string): boolean {
  return /\{[%{]-?\s/.test(text) && /\b(?:messages?|tool_calls?|bos_token)\b/.test(text);
}

/** `{{ .Messages }}`, `{{- range .Messages }}`, `{{ if .System }}`: names with a dot before them. */
function isGo(text: string): boolean {
  return (
    /\{\{-?\s*(?:(?:if|range|with|end|else|and|or|not|eq|json|len)\b[^}]*)?[.$][A-Z]\w*/.test(text) &&
    !text.includes("{%")
  );
}

function fromJson(text: string): TemplateSource | undefined {
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    return undefined; // It only looks like a configuration, so the caller may read it as something else.
  }
  if (!isObject(config)) return undefined;
  const tokens = { bos: tokenOf(config["bos_token"]), eos: tokenOf(config["eos_token"]) };
  const kind = "default_generation_settings" in config ? "props" : "tokenizer";
  const template = pick(config["chat_template_tool_use"], config["chat_template"]);
  return template === undefined ? undefined : { template, tokens, kind };
}

/** The template is a string, or a list of named templates from which the one for tools is taken. */
function pick(forTools: unknown, value: unknown): string | undefined {
  if (typeof forTools === "string" && forTools !== "") return forTools;
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const named = value.filter(isObject);
  const chosen =
    named.find(({ name }) => name === "tool_use") ?? named.find(({ name }) => name === "default") ?? named[0];
  return typeof chosen?.["template"] === "string" ? chosen["template"] : undefined;
}

function tokenOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return isObject(value) && typeof value["content"] === "string" ? value["content"] : undefined;
}

function isGguf(data: Uint8Array): boolean {
  return data[0] === 0x47 && data[1] === 0x47 && data[2] === 0x55 && data[3] === 0x46;
}

/** Sizes of GGUF's plain values by their type number; 8 is a string, 9 a list. */
const sizes: readonly number[] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];

function fromGguf(data: Uint8Array): TemplateSource | undefined {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const found = new Map<string, string>();
  let at = 8;
  const take = (size: number) => {
    if (size < 0 || at + size > data.length) throw new TemplateError("syntax", "the GGUF header is cut or broken");
    at += size;
    return at - size;
  };
  const long = () => Number(view.getBigUint64(take(8), true));
  const string = () => {
    const size = long();
    const start = take(size);
    return data.subarray(start, start + size);
  };
  const skip = (type: number, depth: number): void => {
    if (type === 8) string();
    else if (type === 9) {
      const inner = view.getUint32(take(4), true);
      const count = long();
      if (depth > 4 || count > 10_000_000)
        throw new TemplateError("limit", "the GGUF header nests too deeply or is too long");
      const size = sizes[inner] ?? 0;
      if (size > 0) take(size * count);
      else for (let index = 0; index < count; index++) skip(inner, depth + 1);
    } else {
      const size = sizes[type];
      if (size === undefined)
        throw new TemplateError("syntax", `the GGUF header has a value of an unknown type ${type}`);
      take(size);
    }
  };
  long();
  const count = long();
  const decoder = new TextDecoder();
  for (let index = 0; index < count; index++) {
    const key = decoder.decode(string());
    const type = view.getUint32(take(4), true);
    if (type === 8 && key.startsWith("tokenizer.chat_template")) found.set(key, decoder.decode(string()));
    else skip(type, 0);
    if (found.has("tokenizer.chat_template.tool_use")) break;
  }
  const template = found.get("tokenizer.chat_template.tool_use") ?? found.get("tokenizer.chat_template");
  return template === undefined ? undefined : { template, tokens: {}, kind: "gguf" };
}
