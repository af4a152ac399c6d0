/** Entry of `callgate/template`: chat templates rendered, and asked how their model speaks. Pure: runs in a browser. */
export { inferHistoryForm, type HistoryForm } from "./history.ts";
export { inferFromTemplate, type InferOptions, type TemplateProfile } from "./infer.ts";
export { TemplateError, type TemplateErrorCode, type TemplateLimits } from "./limits.ts";
export { parseTemplate, type ParsedTemplate } from "./parse.ts";
export type { SpecialTokens } from "./probe.ts";
export { renderTemplate, type TemplateContext } from "./render.ts";
export { readTemplateSource, type TemplateSource } from "./source.ts";
/** Types that the signatures above mention. */
export type { TemplateFacts } from "./facts.ts";
export type {
  BinaryNode,
  CallNode,
  CallStatementNode,
  ForNode,
  IdentifierNode,
  MacroNode,
  MemberNode,
  Node,
  SetNode,
  SliceNode,
} from "./parse.ts";
