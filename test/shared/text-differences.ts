/**
 * Where we read a case of this sample otherwise than the parser it was taken from, and the rule that
 * decides it: F and G numbers are those of the facts on text formats, sections 3 and 4.3.
 */
const prototypeKeys = "F40: __proto__, constructor and prototype are data like any other key; the call is kept";
const undeclared = "section 5: undeclared arguments are not dropped; the schema check tells the model about them";
const schemaCheck = "the schema is checked on the line, with an answer the model can act on, not by the parser";
const unknownTool = "F23: a call to an unknown tool is reported, so that it can be answered";
const cutCall = "F10: a call whose end never came is reported as not whole, and never runs";
const rawKept = "F16, F35, G2: what was no call is kept as text";
const streamed = "F4, G5: the call was already told while it streamed; it ends as not whole instead of becoming text";
const renamed = "F44: neither tools nor arguments are renamed";
const twice = "F38: a parameter given again takes the first one's place, unless the schema says list";

const groups: readonly (readonly [string, readonly string[]])[] = [
  [
    prototypeKeys,
    ["hermes-035", "hermes-036", "hermes-103", "hermes-136", "hermes-140", "hermes-162", "hermes-164", "hermes-205"],
  ],
  [prototypeKeys, ["morph-xml-007", "qwen3-coder-048", "qwen3-coder-054", "qwen3-coder-056", "qwen3-coder-057"]],
  [prototypeKeys, ["qwen3-coder-058", "qwen3-coder-115", "qwen3-coder-120", "qwen3-coder-141", "qwen3-coder-148"]],
  [undeclared, ["hermes-029", "hermes-033", "hermes-104", "hermes-108", "hermes-114", "hermes-182"]],
  [undeclared, ["minicpm5-032", "morph-xml-002", "morph-xml-003"]],
  [schemaCheck, ["hermes-059", "hermes-119", "hermes-145", "hermes-168", "hermes-169", "hermes-170", "hermes-175"]],
  [unknownTool, ["dots-008", "hermes-210", "hunyuan-v3-009", "poolside-v1-018"]],
  [cutCall, ["gemma4-064", "json-array-003", "poolside-v1-001", "qwen3-coder-145"]],
  [rawKept, ["deepseek-v3.1-030", "hermes-044", "hermes-224", "hermes-249", "hermes-250", "lfm2-054", "mistral-010"]],
  [rawKept, ["qwen3-coder-164", "qwen3-coder-165"]],
  [streamed, ["hermes-121", "hermes-204", "hermes-208", "hermes-209", "longcat-003"]],
  [streamed, ["qwen3-coder-114"]],
  [renamed, ["hermes-081", "hermes-095", "minicpm5-027"]],
  [twice, ["minicpm5-010", "morph-xml-064", "qwen3-coder-094"]],
  ["F26, F27: text is neither trimmed nor decoded", ["cline-xml-019", "qwen3-coder-062"]],
  ["F26: tags inside a text are part of it", ["morph-xml-059", "morph-xml-060"]],
  ["F28: what does not read as the wanted type in full stays text", ["morph-xml-083", "morph-xml-086"]],
  ["F7: a call that opens inside a value is quoted there, and no end of the value", ["qwen3-coder-089"]],
  ["F8: in JSON a line comment reaches to the end of its line, whatever stands in it", ["hermes-227"]],
  ["F32: unescaped quotes inside a string are not guessed", ["hermes-178"]],
  ["F33: what cannot be read is not replaced by {}", ["morph-xml-050", "morph-xml-052", "qwen3-coder-106"]],
  ["F17: thoughts are their own channel; upstream left them in the text", ["k-exaone-2-002"]],
  ["F17: thoughts are their own channel; upstream left them in the text", ["muse-atem-006", "muse-atem-025"]],
  ["F21: the invented result is dropped, not the call before it", ["gemma4-048"]],
  ["F9: the opener of the next call ends the one before it", ["hermes-193"]],
  ["upstream stops at an error it provoked itself", ["kimi-k2-035"]],
  ["upstream joined the arguments of two calls", ["pythonic-020"]],
  ["the recorded input is the last chunk of several", ["xlam-012"]],
  ["the expected thoughts begin in the prompt, which is not in the input", ["apriel-002", "deepseek-v3.1-032"]],
];

export const differences: ReadonlyMap<string, string> = new Map(
  groups.flatMap(([why, ids]) => ids.map((id) => [id, why] as const)),
);
