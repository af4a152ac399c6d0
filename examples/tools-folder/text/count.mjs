export default {
  name: "count",
  description: "Count the words of a text.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  handler: ({ text }) => ({ words: text.split(/\s+/).filter(Boolean).length }),
};
