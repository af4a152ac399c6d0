import { resolve } from "node:path";
import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { readBody } from "./body.ts";
import { hostOf } from "./host.ts";

const maxBytes = 200 * 1024 * 1024;

/** A file from an allowed host into the workspace. */
export default defineTool({
  name: "internal_network_download",
  group: "network",
  description: "Download a file to a path.",
  input: {
    type: "object",
    properties: {
      url: { type: "string", description: "http or https address" },
      path: { type: "string", description: "Where to put it" },
    },
    required: ["url", "path"],
    additionalProperties: false,
  },
  access: ({ url, path }, { cwd }) => ({ network: [hostOf(url)], write: [resolve(cwd, path)] }),
  mutates: true,
  async run({ url, path }, ctx) {
    // If it may not be written there, it need not be fetched.
    await ctx.files.resolve(path, "write");
    const response = await ctx.fetch(url, { signal: ctx.signal });
    if (!response.ok) throw new CallError("network", `${url} answered with status ${response.status}.`);
    const { bytes, cut } = await readBody(response, maxBytes);
    if (cut) throw new CallError("failed", `${url} is larger than ${maxBytes} bytes; nothing was written.`);
    await ctx.files.write(path, bytes, { parents: true });
    return mcpText({ path, bytes: bytes.length, mediaType: response.headers.get("content-type") ?? "unknown" });
  },
});
