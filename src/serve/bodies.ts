/**
 * What the bodies of requests must be, as JSON Schema: checked for every request, and published in the
 * OpenAPI document.
 */
import type { Json, JsonObject } from "../base/json.ts";

export const text: JsonObject = { type: "string" };
export const short: JsonObject = { type: "string", maxLength: 200 };
export const count: JsonObject = { type: "integer", minimum: 0 };
export const object = (properties: Readonly<Record<string, Json>>, required: readonly string[] = []): JsonObject => ({
  type: "object",
  properties,
  required: [...required],
  additionalProperties: false,
});

const base: JsonObject = {
  oneOf: [
    object({ kind: { const: "empty" } }, ["kind"]),
    object({ kind: { const: "folder" }, path: { type: "string", minLength: 1, maxLength: 4096 } }, ["kind", "path"]),
    object({ kind: { const: "git" }, url: { type: "string", maxLength: 2048 }, ref: short }, ["kind", "url"]),
    object({ kind: { const: "archive" }, url: { type: "string", maxLength: 2048 } }, ["kind", "url"]),
  ],
};

const limits: JsonObject = object(
  Object.fromEntries(
    ["maxRequests", "maxCalls", "maxTokens", "maxCostUsd", "maxMs"].map((name) => [
      name,
      { type: "number", exclusiveMinimum: 0 },
    ]),
  ),
);

export const newSession = object({
  title: short,
  model: short,
  instructions: { type: "string", maxLength: 100_000 },
  base,
  approval: short,
  sandbox: short,
  limits,
});

export const newMessage = object(
  {
    text: { type: "string", maxLength: 1_000_000 },
    attachments: {
      type: "array",
      maxItems: 20,
      items: object(
        { type: { const: "image" }, mediaType: { type: "string", pattern: "^image/[a-z0-9.+-]+$" }, data: text },
        ["type", "mediaType", "data"],
      ),
    },
    mode: { enum: ["queue", "steer"] },
  },
  ["text"],
);

export const approval = object(
  {
    answer: { enum: ["once", "session", "always", "direct", "no", "stop"] },
    message: { type: "string", maxLength: 4_000 },
    hash: { type: "string", maxLength: 200 },
    keep: { type: "array", items: text, maxItems: 10_000 },
  },
  ["answer", "hash"],
);

export const newToken = object(
  {
    name: { type: "string", minLength: 1, maxLength: 100 },
    roles: {
      type: "array",
      minItems: 1,
      uniqueItems: true,
      items: { enum: ["watch", "talk", "approve", "administer"] },
    },
    days: { type: "number", exclusiveMinimum: 0 },
  },
  ["name", "roles"],
);
