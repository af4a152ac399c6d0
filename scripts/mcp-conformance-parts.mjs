// What the conformance fixtures are made of.
import { defineTool } from "../dist/index.js";

export const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
export const image = { type: "image", mediaType: "image/png", data: png };
export const resource = (uri, text) => ({ type: "resource", uri, mediaType: "text/plain", text });
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const nothing = { type: "object", properties: {} };
export const tool = (name, run, input = nothing) =>
  defineTool({ name, description: name, input, mutates: false, parallel: true, run });
