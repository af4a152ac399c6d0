// file/head.js → internal_file_head: the folder is the group, the file the action.
module.exports = {
  name: "head",
  description: "读取文件的第一行",
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  access: ({ path }) => ({ read: [path] }),
  handler: async ({ path }, ctx) => {
    const text = (await ctx.files.readText(path)).text;
    if (text === "") throw new Error(`操作失败: ${path} is empty`);
    return { content: [{ type: "text", text: text.split("\n")[0] }] };
  },
};
