/**
 * Conversations that their client does not name. They are recognised by their beginning. Those that
 * begin alike, which is common for programs, are told apart by the answers in them.
 */
import { createHash, type Hash, randomUUID } from "node:crypto";
import { parseJson } from "../base/json.ts";
import { partsToText } from "../base/content.ts";
import type { Answer, Item, ModelRequest } from "../spec/model.ts";
import { digest } from "./clients.ts";
import type { StateStore } from "./state.ts";

export interface Conversations {
  /** The conversation that a request continues, or a new one. `beginning` is its id if no other begins like it. */
  find(beginning: string, request: ModelRequest): Conversation;
}

export interface Conversation {
  readonly id: string;
  /** What the model answered, with which the next request begins. */
  answered(answer: Pick<Answer, "items" | "outcome">): void;
  /** The request is over, whatever came of it. */
  release(): void;
}

/** The last conversation that began in one way. */
interface Begun {
  readonly id: string;
  asking: number;
  /** A later request continued it, so one that begins again is another conversation. */
  wentOn: boolean;
}

const maxRemembered = 10_000;

export function createConversations(state: StateStore): Conversations {
  const begun = new Map<string, Begun>();

  const remember = (beginning: string, one: Begun): Begun => {
    begun.delete(beginning);
    begun.set(beginning, one);
    for (const oldest of begun.keys()) {
      if (begun.size <= maxRemembered) break;
      begun.delete(oldest);
    }
    return one;
  };
  const beginAgain = (beginning: string): Begun => {
    const last = begun.get(beginning);
    if (last === undefined) return remember(beginning, { id: beginning, asking: 0, wentOn: false });
    // If it is asked again before there was an answer, for example after a failure, it is the same conversation.
    if (last.asking === 0 && !last.wentOn) return last;
    return remember(beginning, { id: digest([beginning, randomUUID()]), asking: 0, wentOn: false });
  };
  const goOn = (beginning: string, known: readonly string[]): string => {
    for (const mark of known.toReversed()) {
      const id = state.get(`turn ${mark}`);
      if (typeof id === "string") return id;
    }
    return begun.get(beginning)?.id ?? beginning;
  };

  return {
    find(beginning, request) {
      const history = readTurns(beginning, request.input);
      const isNew = history.ends.length === 0;
      const first = isNew ? beginAgain(beginning) : begun.get(beginning);
      const id = isNew && first !== undefined ? first.id : goOn(beginning, history.ends);
      if (first !== undefined && first.id === id) {
        first.wentOn ||= !isNew;
        first.asking++;
      }
      return {
        id,
        release() {
          if (first !== undefined && first.id === id) first.asking--;
        },
        answered(answer) {
          if (answer.outcome === "error" || answer.outcome === "truncated") return;
          const [mark] = readTurns(beginning, [...request.input, ...answer.items]).ends.slice(-1);
          if (mark !== undefined && state.get(`turn ${mark}`) !== id) state.put(`turn ${mark}`, id);
        },
      };
    },
  };
}

/** A mark for each point at which the model had answered, covering everything said up to there. */
function readTurns(beginning: string, items: readonly Item[]): { readonly ends: readonly string[] } {
  const ends: string[] = [];
  let said = createHash("sha256").update(beginning);
  let words = "";
  let calls = "";
  const endTurn = () => {
    if (words === "" && calls === "") return;
    said.update(`\u0000answer ${words.replaceAll(/\s+/g, "")}\u0000${calls}`);
    [said, words, calls] = [keep(said, ends), "", ""];
  };
  for (const item of items) {
    // An answer comes back in other pieces than it was given, so its text and its calls are each joined.
    if (item.type === "message" && item.role === "assistant") words += partsToText(item.content);
    else if (item.type === "call") calls += `${item.name} ${sameJson(item.arguments)}\n`;
    else if (item.type === "message" || item.type === "result") {
      endTurn();
      said.update(`\u0000${item.type} ${partsToText(item.content)}`);
    }
  }
  endTurn();
  return { ends };
}

function keep(said: Hash, ends: string[]): Hash {
  const rest = said.copy();
  ends.push(said.digest("hex").slice(0, 24));
  return rest;
}

/** Clients write the JSON of arguments again, possibly in another form. */
export function sameJson(text: string): string {
  const parsed = parseJson(text);
  return parsed.ok ? JSON.stringify(parsed.value) : text;
}
