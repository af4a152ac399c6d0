module.exports = {
  name: "add",
  description: "Adds two numbers.",
  inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  handler: async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
};
