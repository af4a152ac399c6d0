/** What the wires with named events (Responses, Messages) have in common: an answer starts once, ends once, and is deaf after that. */
import { defined } from "../base/json.ts";
import type { AnswerEnd, ModelEvent } from "../spec/model.ts";
import type { AnswerDecoder } from "./codec.ts";
import { createOutbox } from "./outbox.ts";
import { json, parseObject, type Raw, string, word } from "./raw.ts";

export interface EventReader {
  read(type: string, event: Raw): readonly ModelEvent[];
  end(): readonly ModelEvent[];
}

/** The answer as its wire tells it. */
export interface Telling {
  readonly emit: (event: ModelEvent) => void;
  /** True the first time: only the first head counts. */
  start(head?: Raw): boolean;
  end(answer: AnswerEnd): void;
  /** An event that only this wire understands. */
  other(event: Raw): void;
}

/** One wire's part of it. Neither function is called once the answer has ended. */
export interface EventSteps {
  read(type: string, event: Raw): void;
  /** The body is over and nobody said that the answer is. */
  end(): void;
}

export function createEventReader(wire: string, createSteps: (telling: Telling) => EventSteps): EventReader {
  const outbox = createOutbox<ModelEvent>();
  let isStarted = false;
  let isEnded = false;
  const steps = createSteps({
    emit: outbox.push,
    start(head) {
      if (isStarted) return false;
      isStarted = true;
      outbox.push(defined({ type: "answer.started" as const, id: word(head?.["id"]), model: word(head?.["model"]) }));
      return true;
    },
    end(answer) {
      outbox.push({ type: "answer.ended", answer });
      isEnded = true;
    },
    other: (event) => outbox.push({ type: "other", wire, raw: json(event) }),
  });
  return {
    read(type, event) {
      if (!isEnded) steps.read(type, event);
      return outbox.drain();
    },
    end() {
      if (!isEnded) steps.end();
      return outbox.drain();
    },
  };
}

export function toDecoder(reader: EventReader): AnswerDecoder {
  return {
    push(frame) {
      const event = parseObject(frame.data);
      if (event !== undefined) return reader.read(string(event["type"]) ?? frame.event ?? "", event);
      // Proxies put their own words into an error event.
      return frame.event === "error" ? reader.read("error", { message: frame.data }) : [];
    },
    end: () => reader.end(),
  };
}
