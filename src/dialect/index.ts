/** Entry of `callgate/dialect`: tool calls written in a model's text, read and written. Pure: runs in a browser. */
export type { Dialect } from "./dialect.ts";
export { dialects, findDialect, lookUpDialect } from "./dialects.ts";
export { createTextDecoder, decodeText, type TextCallDecoder, type TextDecoderOptions } from "./decode.ts";
export type { ToolLike } from "./tools.ts";
