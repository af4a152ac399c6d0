module.exports = { name: "bad", description: "x", handler: async () => "x" };
