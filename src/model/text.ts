import { defined } from "../base/json.ts";
import { checkOptions, optionsShape } from "../base/shape.ts";
import { toDialect } from "../dialect/dialects.ts";
import { teach, toTextRequest, wrapTextCalls, type Dialect, type TextDecoderOptions } from "../dialect/index.ts";
import { spellId } from "../dialect/write/call.ts";
import type { Model, ModelRequest, ToolSpec } from "../spec/model.ts";
import { spellNames } from "../spec/name.ts";

/** Options of `createTextModel` and `createDualModel`. */
export interface TextModelOptions {
  /**
   * Tools, calls and results go to the server in its own wire's form, and its template writes them as in
   * training. Only the answer is read by the dialect. For servers that accept tools but do not parse
   * calls.
   */
  readonly native?: boolean;
  /** The template does not mention tools, so they are described in the instructions, in the dialect's form. */
  readonly teach?: boolean;
  /** Whether an answer to this request begins in text or in a thought. Left out: in text. */
  readonly startsIn?: (request: ModelRequest) => TextDecoderOptions["startsIn"];
  /** The dialect in the layout of the model's own template, for the calls and results in the history. */
  readonly writes?: Dialect;
  /** Markers of the model's turns. They are broken in results. */
  readonly markers?: readonly string[];
}

const textModelShape = optionsShape<TextModelOptions>({
  native: "boolean",
  teach: "boolean",
  startsIn: "function",
  writes: "table",
  markers: "strings",
});

/**
 * A model that only writes text, given tools through a dialect: they are taught in the prompt, and
 * calls are read from the answer.
 */
export function createTextModel(inner: Model, dialect: string | Dialect, options: TextModelOptions = {}): Model {
  checkOptions("createTextModel", options, textModelShape);
  return {
    name: inner.name,
    ask(asked, signal, how) {
      const { loaded: _loaded, ...rest } = asked;
      const request: ModelRequest = { ...rest, tools: spelled(asked) };
      const startsIn = options.startsIn?.(asked);
      const reading = {
        dialect,
        tools: request.tools,
        history: request.input,
        ...defined({ startsIn, conversation: asked.cacheKey }),
      };
      const sent =
        options.native === true
          ? toNativeRequest(request, dialect, options)
          : toTextRequest(request, options.writes ?? dialect, options.markers);
      return wrapTextCalls(inner.ask(sent, signal, how), reading);
    },
  };
}

/** The request as it is; only tools that the template would leave out are described in words. */
function toNativeRequest(asked: ModelRequest, dialect: string | Dialect, options: TextModelOptions): ModelRequest {
  const request = withOwnIds(asked, toDialect(dialect));
  if (options.teach !== true || request.tools.length === 0) return request;
  const told = [request.instructions, teach(dialect, request.tools)].filter(
    (part) => part !== undefined && part !== "",
  );
  return { ...request, instructions: told.join("\n\n") };
}

/** Some templates write an id as their models spell it, and refuse or garble all others. */
function withOwnIds(request: ModelRequest, dialect: Dialect): ModelRequest {
  if (dialect.ids !== "functions" && dialect.ids !== "nine") return request;
  const ids = new Map<string, string>();
  for (const item of request.input)
    if (item.type === "call") ids.set(item.id, spellId(dialect, item.id, item.name, ids.size));
  const input = request.input.map((item) => {
    if (item.type === "call") return { ...item, id: ids.get(item.id) ?? item.id };
    return item.type === "result" ? { ...item, callId: ids.get(item.callId) ?? item.callId } : item;
  });
  return { ...request, input };
}

/**
 * A model that is offered its tools natively and in a dialect at once. Whichever form its answer uses
 * is read, and both run on the same line. Its history goes back in the API's own form.
 */
export function createDualModel(inner: Model, dialect: string): Model {
  const taught = new WeakMap<readonly ToolSpec[], string>();
  const teachOnce = (tools: readonly ToolSpec[]) => {
    const known = taught.get(tools) ?? teach(dialect, tools, { native: true });
    taught.set(tools, known);
    return known;
  };
  return {
    ...inner,
    name: inner.name,
    ask(asked, signal, how) {
      const tools = spelled(asked);
      const isOff = tools.length === 0 || asked.toolChoice === "none";
      const told = [asked.instructions ?? "", isOff ? "" : teachOnce(tools)].filter((part) => part !== "");
      const request: ModelRequest = { ...asked, ...(told.length === 0 ? {} : { instructions: told.join("\n\n") }) };
      return wrapTextCalls(inner.ask(request, signal, how), {
        dialect,
        tools,
        history: asked.input,
        ...defined({ conversation: asked.cacheKey }),
      });
    },
  };
}

/** Applies a profile's form: `native`, `text:DIALECT` or `native+text:DIALECT`. */
export function speakForm(model: Model, form: string): Model {
  const [, dual, dialect] = /^(native\+)?text:(.+)$/.exec(form) ?? [];
  if (dialect === undefined) return model;
  return dual === undefined ? createTextModel(model, dialect) : createDualModel(model, dialect);
}

/** Made once per list, because a session sends the same list again and again. */
const known = new WeakMap<readonly ToolSpec[], readonly ToolSpec[]>();

/**
 * `server/tool` cannot be a tag, so it is taught in the spelling of other wires; the registry knows
 * every spelling. Tools that came as items of the conversation are taught with the others, because
 * text has only one list.
 */
function spelled({ tools: declared, loaded = [] }: ModelRequest): readonly ToolSpec[] {
  const kept = loaded.length === 0 ? known.get(declared) : undefined;
  if (kept !== undefined) return kept;
  const tools = [...declared, ...loaded];
  const names = spellNames(tools.map(({ name }) => name));
  const list = tools.map((tool) => ({ ...tool, name: names.get(tool.name) ?? tool.name }));
  if (loaded.length === 0) known.set(declared, list);
  return list;
}
