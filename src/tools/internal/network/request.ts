import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { hostOf } from "./host.ts";
import { readBody } from "./body.ts";

const defaultTimeoutMs = 30_000;
/** Node refuses a longer one. */
const longestTimerMs = 2 ** 31 - 1;
const maxBytes = 2 * 1024 * 1024;

/** One HTTP request, to the hosts that are allowed. */
export default defineTool({
  name: "internal_network_request",
  group: "network",
  description: "Make an HTTP request; answers with status, headers and body.",
  input: {
    type: "object",
    properties: {
      url: { type: "string", description: "http or https address" },
      method: {
        type: "string",
        enum: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
        description: "GET if left out",
      },
      headers: { type: "object", additionalProperties: { type: "string" } },
      body: { type: "string" },
      timeout: { type: "integer", minimum: 1, description: "Milliseconds (30000)" },
    },
    required: ["url"],
    additionalProperties: false,
  },
  access: ({ url }) => ({ network: [hostOf(url)] }),
  parallel: true,
  mutates: ({ method = "GET" }) => method !== "GET" && method !== "HEAD" && method !== "OPTIONS",
  async run({ url, method = "GET", headers, body, timeout = defaultTimeoutMs }, ctx) {
    if (body !== undefined && (method === "GET" || method === "HEAD"))
      throw new CallError("invalid_input", `A ${method} request has no body.`);
    const response = await ctx.fetch(url, {
      method,
      signal: AbortSignal.timeout(Math.min(timeout, longestTimerMs)),
      ...(headers === undefined ? {} : { headers: headers as Record<string, string> }),
      ...(body === undefined ? {} : { body }),
    });
    const { bytes, cut } = await readBody(response, maxBytes);
    const isText = !Buffer.from(bytes).subarray(0, 8_192).includes(0);
    return mcpText({
      status: response.status,
      url: response.url || url,
      headers: Object.fromEntries(response.headers),
      body: isText
        ? Buffer.from(bytes).toString("utf8")
        : `(${bytes.length} bytes that are not text; use internal_network_download)`,
      ...(cut ? { note: `only the first ${maxBytes} bytes are shown` } : {}),
    });
  },
});
