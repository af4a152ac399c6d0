/** Gemini generateContent answers to neutral events. Calls come whole, mostly without ids, under finish reason STOP. */
import { defined, isObject } from "../../base/json.ts";
import type { ModelEvent } from "../../spec/model.ts";
import { type ChunkDecoder, toAnswerReader } from "../chunk-decoder.ts";
import type { DecodeOptions } from "../codec.ts";
import { createOutbox } from "../outbox.ts";
import { json, object, objects, parseObject, word, type Raw } from "../raw.ts";
import { outcomeOf, readEnding, toEnd, type Ending } from "./ending.ts";
import { createItems, type Items } from "./items.ts";
import { wire } from "./parts.ts";

export const decodeAnswer = toAnswerReader(createDecoder);

export function createDecoder(options: DecodeOptions = {}): ChunkDecoder {
  const events = createOutbox<ModelEvent>();
  const ending: Ending = {};
  let items: Items | undefined;
  let hasEnded = false;

  function start(chunk: Raw): Items {
    const id = word(chunk["responseId"]);
    events.push({ type: "answer.started", ...defined({ id, model: word(chunk["modelVersion"]) }) });
    items = createItems(events.push, options, id ?? "");
    return items;
  }

  function pushChunk(body: Raw): readonly ModelEvent[] {
    // Code Assist, which gemini-cli talks to, puts each chunk into an envelope.
    const chunk = isObject(body["response"]) ? body["response"] : body;
    const into = items ?? start(chunk);
    const candidate = objects(chunk["candidates"]).find((one) => (one["index"] ?? 0) === 0);
    for (const part of objects(object(candidate?.["content"])["parts"])) into.take(part);
    if (!readEnding(chunk, candidate, ending) && candidate === undefined)
      events.push({ type: "other", wire, raw: json(chunk) });
    return events.drain();
  }

  return {
    pushChunk,
    push(frame) {
      if (hasEnded) return [];
      const chunk = parseObject(frame.data);
      if (chunk !== undefined) return pushChunk(chunk);
      // Proxies put their own words into an error event.
      return frame.event === "error" ? pushChunk({ error: { message: frame.data } }) : [];
    },
    end() {
      if (hasEnded) return [];
      hasEnded = true;
      const outcome = outcomeOf(ending);
      const calls = (items ?? start({})).done(outcome);
      events.push({ type: "answer.ended", answer: toEnd(ending, outcome, calls) });
      return events.drain();
    },
  };
}
