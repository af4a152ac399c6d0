/** Finds out which dialect a model uses, from its chat template or from a few of its answers. */
import { decodeText } from "./decode.ts";
import type { Body, Dialect } from "./dialect.ts";
import { dialects } from "./dialects.ts";

/** A dialect that fits, and the evidence for it. */
export interface Inferred {
  readonly dialect: string;
  /** Markers found in the template, or how many complete calls were read. */
  readonly evidence: readonly string[];
  readonly score: number;
}

/** The dialects that a model may speak, judged by its answers, the likeliest first. Empty if nothing points to any. */
export function inferDialect(source: string | readonly string[]): readonly Inferred[] {
  const texts = typeof source === "string" ? [source] : source;
  const template = texts.some((text) => /\{[%{]-? /.test(text) && /\b(?:messages?|tool_calls?|bos_token)\b/.test(text));
  const found = template ? fromTemplate(texts.join("\n")) : fromTranscripts(texts);
  return found.filter(({ score }) => score > 0).toSorted((a, b) => b.score - a.score);
}

const speakable = dialects.filter(({ name }) => name !== "auto" && name !== "callgate");

/** Dialects by the markers in a text. Every marker counts by its length, and the opener itself must be there. */
export function inferFromMarkers(text: string): readonly Inferred[] {
  return fromTemplate(text)
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score);
}

function fromTemplate(text: string): readonly Inferred[] {
  const plain = text.replaceAll("\\n", "\n").replaceAll('\\"', '"');
  return speakable.map((dialect) => {
    const [opens, marks] = signature(dialect);
    const opened = opens.length === 0 ? marks.slice(0, 1) : opens;
    const evidence = [...new Set([...opens, ...marks])].filter((mark) => plain.includes(mark));
    const must = dialect.blocks[0]?.bodies[0]?.kind === "json" ? opens : marks;
    const whole = opened.some((mark) => plain.includes(mark)) && must.every((mark) => plain.includes(mark));
    const rivals =
      dialect.blocks[0]?.bodies[0]?.kind === "json"
        ? ["<function=", "<arg_key>", "<invoke"].filter((mark) => plain.includes(mark)).length
        : 0;
    return { dialect: dialect.name, evidence, score: whole ? evidence.join("").length - 12 * rivals : 0 };
  });
}

function signature(dialect: Dialect): readonly [readonly string[], readonly string[]] {
  if (dialect.channels === "harmony") return [["<|channel|>"], ["commentary", "to=functions."]];
  if (dialect.channels === "inkling") return [["<|content_invoke_tool_json|>"], ["<|message_model|>"]];
  if (dialect.channels === "functionary") return [[">>>"], [">>>all"]];
  const [block] = dialect.blocks;
  const opens = (block?.open ?? []).slice(0, 1).map((open) => open.trim());
  const bodies = block?.bodies.slice(0, 1).flatMap(bodySignature) ?? [];
  return [opens.filter((open) => open.length > 3), bodies];
}

function bodySignature(body: Body): readonly string[] {
  switch (body.kind) {
    case "tagged":
      return [body.tags.call, body.tags.parameter]
        .map((tag) => tag.slice(0, tag.indexOf("{name}")))
        .filter((tag) => tag.length > 3);
    case "pairs":
      return [body.key.open, body.value.open, ...(body.separator === undefined ? [] : [body.separator])];
    case "named":
      return [...(body.before ?? []), ...body.separator.filter((mark) => mark.trim() !== "")];
    case "quoted":
      return [body.prefix, body.quote];
    case "action":
      return body.input.slice(0, 1);
    case "codeblock":
      return ["BEGIN_ARG:"];
    default:
      return [];
  }
}

/** Every dialect reads every answer. Complete calls count for it; repairs and leftover markup count against it. */
function fromTranscripts(texts: readonly string[]): readonly Inferred[] {
  return speakable
    .filter(({ tags }) => tags === undefined)
    .map((dialect) => {
      let whole = 0;
      let doubt = 0;
      for (const text of texts) {
        const { items } = decodeText(text, { dialect, startsIn: "unknown" });
        for (const item of items) {
          if (item.type !== "call") continue;
          const repairs = item.extra?.fields["repairs"];
          if (item.complete) whole++;
          doubt += item.complete ? (Array.isArray(repairs) ? repairs.length * 0.25 : 0) : 1;
        }
        doubt += dialect.trust === "markerless" ? 0.1 : 0;
      }
      const first = dialect.blocks[0]?.bodies[0]?.kind;
      const fits = texts.some(
        (text) =>
          signature(dialect)
            .flat()
            .every((mark) => text.includes(mark)) && first !== undefined,
      );
      return {
        dialect: dialect.name,
        evidence: [`${whole} whole calls in ${texts.length} answers`],
        score: whole === 0 ? 0 : whole - doubt + (fits ? 0.5 : 0),
      };
    });
}
