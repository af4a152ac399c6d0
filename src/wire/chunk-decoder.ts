/**
 * What the wires with unnamed chunks (Chat, Gemini) have in common: a body that came as a whole reads
 * like a single chunk.
 */
import type { Answer, ModelEvent } from "../spec/model.ts";
import { collect } from "./answer.ts";
import type { AnswerDecoder, DecodeOptions } from "./codec.ts";
import { object, type Raw } from "./raw.ts";

export interface ChunkDecoder extends AnswerDecoder {
  pushChunk(chunk: Raw): readonly ModelEvent[];
}

export function toAnswerReader(create: (options?: DecodeOptions) => ChunkDecoder) {
  return (body: unknown, options?: DecodeOptions): Answer => {
    const decoder = create(options);
    return collect([...decoder.pushChunk(object(body)), ...decoder.end()]);
  };
}
