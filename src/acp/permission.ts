/** A question of the gate as an editor shows it: the command, the reason and the diff come first. */
import type { PermissionOption, RequestPermissionResponse, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { toVisibleLine } from "../gate/show.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../spec/stages.ts";
import { describeCall, diffContent, textContent } from "./describe.ts";

export function permissionCall(request: ApprovalRequest, cwd: string): ToolCallUpdate {
  const { call, commands, reason, diff, effects } = request;
  const { title, kind, locations } = describeCall(call.tool, JSON.stringify(call.input) ?? "", cwd);
  const lines = commands.map((words) => words.join(" "));
  const did = (effects?.lines ?? []).map(({ mark, text }) => `${mark} ${toVisibleLine(text)}`);
  const held = did.length === 0 ? [] : [`It has run. Nothing of this is kept yet:\n\`\`\`\n${did.join("\n")}\n\`\`\``];
  const shown = [reason, ...(lines.length === 0 ? [] : [`\`\`\`sh\n${lines.join("\n")}\n\`\`\``]), ...held].join(
    "\n\n",
  );
  return {
    toolCallId: call.id,
    title,
    kind,
    locations,
    status: "pending",
    rawInput: call.input,
    content: [textContent(shown), ...(diff === undefined ? [] : diffContent(diff, cwd))],
  };
}

/** 'Always' says which rule it saves: it is for this command, and never for the whole tool. */
export function permissionOptions({ always, effects }: ApprovalRequest): PermissionOption[] {
  const isHeld = effects !== undefined;
  return [
    { optionId: "once", name: isHeld ? "Keep what it did" : "Yes, this once", kind: "allow_once" },
    { optionId: "session", name: "Yes, for this session", kind: "allow_always" },
    ...(always === undefined
      ? []
      : [
          {
            optionId: "always",
            name: `Always (${always.rule})${always.alsoAllows === "" ? "" : `; also allows ${always.alsoAllows}`}`,
            kind: "allow_always" as const,
          },
        ]),
    ...(effects?.direct === undefined
      ? []
      : [{ optionId: "direct", name: `Run it again directly (${effects.direct})`, kind: "allow_once" as const }]),
    { optionId: "no", name: isHeld ? "Drop it" : "No", kind: "reject_once" },
    { optionId: "stop", name: "No, and stop", kind: "reject_once" },
  ];
}

/** Only an option that was offered counts. An editor that cancels has stopped the turn. */
export function readPermission({ outcome }: RequestPermissionResponse, request: ApprovalRequest): ApprovalAnswer {
  if (outcome.outcome !== "selected") return { answer: "stop" };
  const chosen = permissionOptions(request).find(({ optionId }) => optionId === outcome.optionId)?.optionId;
  return chosen === "once" || chosen === "session" || chosen === "always" || chosen === "direct" || chosen === "stop"
    ? { answer: chosen }
    : { answer: "no" };
}
