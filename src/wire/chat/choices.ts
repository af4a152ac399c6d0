/**
 * Which choice of a Chat answer is followed: number 0, or the lowest there is where no chunk ever has a 0. Servers asked
 * for several send them interleaved, and only one is an answer. Others number the pieces of one answer: its tokens (TGI),
 * or its blocks, so that the calls stand under 1 (Bedrock behind LiteLLM).
 */
import { number, objects, object, type Raw } from "../raw.ts";

export interface Choices {
  /** The followed choice of a chunk. */
  take(chunk: Raw): Raw | undefined;
  /** The pieces of the answer that were passed over because they might have been another's. */
  end(): readonly Raw[];
}

interface Stray {
  readonly index: number;
  readonly choice: Raw;
}

export function createChoices(): Choices {
  const strays: Stray[] = [];
  const finished = new Set<number>();
  const first = { isThere: false, hasText: false, hasCalls: false };
  let lowest = Infinity;
  let highest = 0;
  let wentBack = false;

  function note(choice: Raw): number {
    const index = number(choice["index"] ?? 0) ?? Infinity;
    if (choice["finish_reason"]) finished.add(index);
    if (index < highest) wentBack ||= hasText(choice) || hasCalls(choice);
    highest = Math.max(highest, index);
    lowest = Math.min(lowest, index);
    return index;
  }

  return {
    take(chunk) {
      let followed: Raw | undefined;
      for (const choice of objects(chunk["choices"])) {
        const index = note(choice);
        if (index === 0) followed ??= choice;
        else strays.push({ index, choice });
      }
      if (followed === undefined) return undefined;
      first.isThere = true;
      first.hasText ||= hasText(followed);
      first.hasCalls ||= hasCalls(followed);
      return followed;
    },
    end() {
      const isOneAnswer = finished.size === 1 && !wentBack;
      const isWanted = ({ index, choice }: Stray) => {
        if (!first.isThere) return isOneAnswer || index === lowest;
        // A second text is another answer, calls beside a text are not.
        return isOneAnswer && ((hasText(choice) && !first.hasText) || (hasCalls(choice) && !first.hasCalls));
      };
      return strays.filter(isWanted).map(({ choice }) => choice);
    },
  };
}

function deltaOf(choice: Raw): Raw {
  return object(choice["delta"] ?? choice["message"]);
}

function hasText(choice: Raw): boolean {
  return Boolean(deltaOf(choice)["content"]);
}

function hasCalls(choice: Raw): boolean {
  const calls = deltaOf(choice)["tool_calls"];
  return Array.isArray(calls) && calls.length > 0;
}
