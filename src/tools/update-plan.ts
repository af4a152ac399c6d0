import { CallError, defineTool } from "../index.ts";

/** The model's own checklist: it changes nothing but what the operator sees. */
export const updatePlan = defineTool({
  name: "update_plan",
  description: "Replace the task plan. At most one step may be in progress.",
  input: {
    type: "object",
    properties: {
      explanation: { type: "string" },
      plan: {
        type: "array",
        items: {
          type: "object",
          properties: {
            step: { type: "string" },
            status: { type: "string", enum: ["pending", "in_progress", "completed"] },
          },
          required: ["step", "status"],
          additionalProperties: false,
        },
      },
    },
    required: ["plan"],
    additionalProperties: false,
  },
  mutates: false,
  group: "plan",
  run({ plan, explanation }, ctx) {
    const active = plan.filter((item) => item.status === "in_progress").length;
    if (active > 1) throw new CallError("invalid_input", `${active} steps are in progress; one may be.`);
    ctx.session.set("plan", plan);
    const steps = plan.map(({ step, status }) => ({ step, status }));
    ctx.progress({
      message: "plan updated",
      data: { type: "plan.updated", plan: steps, ...(explanation === undefined ? {} : { explanation }) },
    });
    return "Plan updated";
  },
});
