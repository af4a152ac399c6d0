/** What a Messages stream has said about its end so far: the stop fields and the counters. */
import type { AnswerEnd, Usage } from "../../spec/model.ts";
import { object, type Raw, word } from "../raw.ts";
import { decodeUsage, endOf, overlay, readStop } from "./ending.ts";

export interface Tally {
  /** The counters of `message_start`, and the stop fields where it has them already. */
  start(message: Raw): void;
  /** A `message_delta`. */
  add(event: Raw): void;
  /** A stop reason says the same as `message_stop`, which some servers forget. */
  isStopped(): boolean;
  end(hasCalls: boolean): AnswerEnd;
  /** Why the model refused; it stands beside the content. */
  refusal(): string | undefined;
  /** What a message that broke off has cost. Counters of its start are not its cost. */
  cost(): Usage | undefined;
}

export function createTally(): Tally {
  let usage: Raw = {};
  let isCounted = false;
  let stop: Raw = {};
  return {
    start(message) {
      usage = overlay({}, message["usage"]);
      const { stop_reason, stop_sequence, stop_details } = message;
      stop = overlay({}, { stop_reason, stop_sequence, stop_details });
    },
    add(event) {
      stop = overlay(stop, event["delta"]);
      isCounted ||= event["usage"] !== undefined && event["usage"] !== null;
      usage = overlay(usage, event["usage"]);
    },
    isStopped: () => word(stop["stop_reason"]) !== undefined,
    end: (hasCalls) => endOf({ ...readStop(stop), usage: decodeUsage(usage) }, hasCalls),
    refusal: () => word(object(stop["stop_details"])["explanation"]),
    cost: () => (isCounted ? decodeUsage(usage) : undefined),
  };
}
