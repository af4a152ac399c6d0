/** Entry of `callgate/dialect`: tool calls in a model's text, read and written. It is pure and runs in a browser. */
export type { Dialect } from "./dialect.ts";
export { dialects, findDialect } from "./dialects.ts";
export { createTextDecoder, decodeText, type TextCallDecoder, type TextDecoderOptions } from "./decode.ts";
export { inferDialect, type Inferred } from "./infer.ts";
export { wrapTextCalls, type TextCallOptions } from "./process.ts";
export type { ToolLike } from "./tools.ts";
export { encodeCalls, type CallText } from "./write/call.ts";
export { toTextRequest } from "./write/request.ts";
export { encodeResults, stopSequences, type ResultText } from "./write/result.ts";
export { teach, type TeachOptions } from "./write/teach.ts";
/** Types that the signatures above mention. */
export type {
  ActionBody,
  Block,
  Body,
  CodeblockBody,
  JsonBody,
  Layout,
  NamedBody,
  PairsBody,
  PythonBody,
  QuotedBody,
  Reasoning,
  ResultForm,
  TagPair,
  TagRules,
  TaggedBody,
} from "./dialect.ts";
export type { Start } from "./read/answer.ts";
