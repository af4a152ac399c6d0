/** Where we read a case of the shared sample otherwise than the parser it was taken from, and why. */
const prototypeKeys = "F40: __proto__, constructor and prototype are data like any other key; the call is kept";
const undeclared = "we do not drop undeclared arguments: the schema check tells the model about them";
const schemaCheck = "the schema is checked on the line, with an answer the model can act on, not by the parser";
const unknownTool = "F23: a call to an unknown tool is reported, so that it can be answered";
const cutCall = "F10: a call whose end never came is reported as not whole, and never runs";
const rawKept = "F10, F35: what was no call is kept as text";
const streamed =
  "F4: the call was already told while it streamed; it ends as not whole instead of turning back into text";
const renamed = "F44: neither tools nor arguments are renamed";
const repair = "not on our list of repairs: the model is told instead";
const literalText = "F26, F27: text is neither trimmed nor decoded";
const twice = "F38: a parameter given twice makes the call not whole, unless the schema says list";
const upstream = "upstream contradicts itself or its own format here";
const bareTag = "a tool's name without its tag is no call";

const groups: readonly (readonly [string, readonly string[]])[] = [
  [
    prototypeKeys,
    ["hermes-035", "hermes-036", "hermes-103", "hermes-136", "hermes-140", "hermes-164", "hermes-205", "morph-xml-007"],
  ],
  [prototypeKeys, ["qwen3-coder-048", "qwen3-coder-054", "qwen3-coder-056", "qwen3-coder-057", "qwen3-coder-058"]],
  [prototypeKeys, ["qwen3-coder-115", "qwen3-coder-120", "qwen3-coder-141", "qwen3-coder-148"]],
  [undeclared, ["hermes-029", "hermes-033", "hermes-104", "hermes-108", "hermes-114", "hermes-182"]],
  [undeclared, ["minicpm5-032", "morph-xml-002", "morph-xml-003"]],
  [schemaCheck, ["hermes-059", "hermes-119", "hermes-145", "hermes-168", "hermes-169", "hermes-170", "hermes-175"]],
  [unknownTool, ["dots-008", "hermes-210", "hunyuan-v3-009", "poolside-v1-018"]],
  [cutCall, ["gemma4-064", "json-array-003", "poolside-v1-001", "qwen3-coder-145"]],
  [rawKept, ["deepseek-v3.1-030", "hermes-044", "hermes-224", "hermes-249", "hermes-250", "lfm2-054", "mistral-010"]],
  [rawKept, ["qwen3-coder-164", "qwen3-coder-165", "morph-xml-064"]],
  [streamed, ["hermes-121", "hermes-204", "hermes-208", "hermes-209", "hermes-223", "longcat-003"]],
  [streamed, ["minicpm5-010", "qwen3-coder-114"]],
  [renamed, ["hermes-081", "hermes-095", "minicpm5-027"]],
  [repair, ["hermes-162", "hermes-178", "hermes-185", "hermes-227", "morph-xml-086"]],
  [
    repair,
    ["qwen3-coder-084", "qwen3-coder-089", "qwen3-coder-103", "qwen3-coder-105", "qwen3-coder-106", "qwen3-coder-109"],
  ],
  [repair, ["morph-xml-048", "morph-xml-059", "morph-xml-060", "morph-xml-083"]],
  [literalText, ["cline-xml-019", "qwen3-coder-062"]],
  [twice, ["morph-xml-084", "qwen3-coder-094"]],
  [bareTag, ["morph-xml-013", "morph-xml-087", "morph-xml-090"]],
  ["body text stands for the only required parameter; upstream drops it and calls with nothing", ["morph-xml-050"]],
  ["F33: body text that stands for no parameter is not replaced by {}", ["morph-xml-052"]],
  [
    "F17: thoughts are their own channel; upstream left them in the text",
    ["k-exaone-2-002", "muse-atem-006", "muse-atem-025"],
  ],
  ["a call is not dropped because a result was invented after it; the invention is", ["gemma4-048"]],
  [upstream, ["hermes-193", "kimi-k2-035", "pythonic-020", "xlam-012"]],
  ["the expected thoughts begin in the prompt, which is not in the input", ["apriel-002", "deepseek-v3.1-032"]],
];

export const differences: ReadonlyMap<string, string> = new Map(
  groups.flatMap(([why, ids]) => ids.map((id) => [id, why] as const)),
);
