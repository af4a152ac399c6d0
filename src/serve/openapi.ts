/** The API as an OpenAPI document, made from the table of routes. */
import type { Json, JsonObject } from "../base/json.ts";
import { count, object, short, text } from "./bodies.ts";
import { routes, type Route } from "./routes.ts";

/** The description of the API in OpenAPI 3.1, made from the table of routes. */
export function toOpenApi(version: string): JsonObject {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = toOperation(route);
  }
  return {
    openapi: "3.1.0",
    info: { title: "callgate serve", version },
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: {
        Problem: object({ type: text, title: text, status: count, detail: text }, [
          "type",
          "title",
          "status",
          "detail",
        ]),
      },
    },
  };
}

function toOperation(route: Route): JsonObject {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => parameter(name!, "path", true, text));
  const inQuery = Object.entries(route.query ?? {}).map(([name, schema]) => parameter(name, "query", false, schema));
  const header = route.isStream
    ? [parameter("Last-Event-ID", "header", false, text)]
    : route.isRepeatable
      ? [{ ...parameter("Idempotency-Key", "header", false, short), description: keyWords }]
      : [];
  const type = route.isStream ? "text/event-stream" : "application/json";
  const content = { [type]: route.answer === undefined ? {} : { schema: route.answer } };
  return {
    operationId: `${route.method.toLowerCase()}${route.path.replaceAll(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: route.summary,
    "x-role": route.role,
    parameters: [...inPath, ...inQuery, ...header],
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: route.body } } } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, description]) => [
          status,
          { description, ...(status === "204" ? {} : { content }) },
        ]),
      ),
      ...(route.isRepeatable ? { 422: problem("the Idempotency-Key was used for another request") } : {}),
      default: problem("a problem, in words"),
    },
  };
}

const keyWords =
  "The same key with the same body is the same request, and gets the first one's result. With another body it is refused (422).";

function problem(description: string): JsonObject {
  return {
    description,
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
}

function parameter(name: string, place: string, required: boolean, schema: JsonObject): JsonObject {
  return { name, in: place, required, schema };
}
