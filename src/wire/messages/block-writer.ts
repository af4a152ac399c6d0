/** Content blocks on their way out: one open at a time, numbered from 0 without gaps. */
import type { Json, JsonObject } from "../../base/json.ts";
import { array, json } from "../raw.ts";

export interface BlockWriter {
  /** Adds words to the open block, opening one where there is none. */
  say(kind: "text" | "thinking", words: string): void;
  /** Ends the open block with what stands at its end: a thought's signature, a text's citations. */
  end(last?: JsonObject): void;
  /** A block that comes in one piece, as the deltas that would have brought it. */
  whole(block: JsonObject): void;
  /** A call. A client runs it when its block is stopped. */
  call(block: JsonObject, input: string): void;
}

export function createBlockWriter(emit: (type: string, fields: JsonObject) => void): BlockWriter {
  let index = 0;
  let isOpen = false;

  function start(block: JsonObject): void {
    emit("content_block_start", { index, content_block: block });
    isOpen = true;
  }

  function delta(type: string, field: string, value: Json): void {
    emit("content_block_delta", { index, delta: { type, [field]: value } });
  }

  function stop(): void {
    emit("content_block_stop", { index });
    index++;
    isOpen = false;
  }

  function say(kind: "text" | "thinking", words: string): void {
    if (!isOpen)
      start(kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" });
    if (words !== "") delta(`${kind}_delta`, kind, words);
  }

  function end(last: JsonObject = {}): void {
    const signature = last["signature"];
    if (typeof signature === "string" && signature !== "") delta("signature_delta", "signature", signature);
    for (const citation of array(last["citations"])) delta("citations_delta", "citation", json(citation));
    stop();
  }

  return {
    say,
    end,
    whole(block) {
      switch (block["type"]) {
        case "text":
        case "thinking":
          say(block["type"], String(block[block["type"]] ?? ""));
          return end(block);
        case "server_tool_use":
        case "mcp_tool_use":
          start({ ...block, input: {} });
          delta("input_json_delta", "partial_json", JSON.stringify(block["input"] ?? {}));
          return stop();
        default:
          start(block);
          return stop();
      }
    },
    call(block, input) {
      start(block);
      delta("input_json_delta", "partial_json", input);
      stop();
    },
  };
}
