const fs = require("fs");

/**
 * 工具描述
 */
const someAsyncOperation = async (param1) => ({ param1, exists: fs.existsSync(param1) });

const myTool = {
  name: "internal_my_tool",
  description: "工具描述",
  inputSchema: {
    type: "object",
    properties: {
      param1: {
        type: "string",
        description: "参数1描述",
      },
    },
    required: ["param1"],
  },
  handler: async (args, ctx) => {
    const { param1 } = args;
    ctx.logger.info("工具执行中...");
    const result = await someAsyncOperation(param1);
    return {
      content: [
        {
          type: "text",
          text: JSON.stringify(result, null, 2),
        },
      ],
    };
  },
};

module.exports = myTool;
