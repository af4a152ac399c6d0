import { isObject, type JsonObject } from "../base/json.ts";
import { toVisibleLine } from "../gate/show.ts";
import type { Elicitation, ElicitationAnswer, McpHost } from "../mcp/index.ts";
import type { Engine } from "../router/engine.ts";
import type { Approver } from "../spec/stages.ts";

/**
 * A server's question, put to whoever approves calls. They answer yes or no: an address to open, or a
 * form that can be sent as it is. A form somebody would have to fill in is declined, and said.
 */
export function createElicit(
  engine: Engine,
  approver: Approver | undefined,
  warn: (message: string) => void,
): NonNullable<McpHost["elicit"]> {
  let count = 0;
  return async (question, signal) => {
    const filled = question.mode === "form" ? fill(question.schema) : {};
    if (filled === undefined) {
      warn(`the MCP server '${question.server}' asked for values that cannot be given here: ${question.message}`);
      return { action: "decline" };
    }
    const id = `elicitation_${++count}`;
    const answer = await approver?.ask(
      {
        call: { id, tool: `${question.server}/(question)`, input: question.mode === "url" ? question.url : filled },
        reason: wordsOf(question),
        access: {},
        grant: engine.gate.baseGrant(),
        commands: [],
        hash: id,
      },
      signal,
    );
    if (answer === undefined) return { action: "decline" };
    if (answer.answer === "no" || answer.answer === "stop") return { action: "decline" };
    return { action: "accept", ...(question.mode === "form" ? { content: filled } : {}) };
  };
}

function wordsOf(question: Elicitation): string {
  return question.mode === "url"
    ? `the server asks you to open ${toVisibleLine(question.url)} in a browser: ${question.message}`
    : question.message;
}

/** The values a form already has; undefined where a required one is missing. A lone yes-or-no is what the answer itself says. */
function fill(schema: JsonObject): ElicitationAnswer["content"] {
  const properties = Object.entries(isObject(schema["properties"]) ? schema["properties"] : {});
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const values: [string, string | number | boolean][] = [];
  for (const [name, property] of properties) {
    const value = isObject(property) ? property["default"] : undefined;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      values.push([name, value]);
    else if (isObject(property) && property["type"] === "boolean" && required.length === 1) values.push([name, true]);
    else if (required.includes(name)) return undefined;
  }
  return Object.fromEntries(values);
}
