// text/reverse.mjs → internal_text_reverse. The file names the action, the folder the group.
export default {
  name: "reverse",
  description: "Turn a text around.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  async handler({ text }, ctx) {
    ctx.logger.info("reversing");
    return { content: [{ type: "text", text: Array.from(text).toReversed().join("") }] };
  },
};
