import { defined, type JsonObject } from "../../base/json.ts";
import type { CallEvent } from "../../index.ts";
import type { ElicitationChannel } from "./multi-round.ts";

const levels = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;

/** A listener for one call's events: what it tells goes to whichever request it is being served by at that moment. */
export function tellClient(channel: ElicitationChannel): (event: CallEvent) => void {
  let steps = 0;
  const report = ({ progress: told }: Extract<CallEvent, { type: "call.progress" }>) => {
    const { mcpReq } = channel.request();
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined) return undefined;
    const { progress, total, message } = typeof told === "string" ? { message: told } : { ...told };
    steps = Math.max(steps + 1, progress ?? 0);
    return mcpReq.notify({
      method: "notifications/progress",
      params: {
        progressToken,
        progress: progress ?? steps,
        ...defined({ total, message }),
      },
    });
  };
  return (event) => {
    if (event.type !== "call.progress" && event.type !== "call.log") return;
    const sent =
      event.type === "call.progress"
        ? report(event)
        : channel.request().mcpReq.log(levels[event.level], toData(event.message, event.fields));
    sent?.catch(() => undefined); // a client that has gone needs to hear nothing
  };
}

function toData(message: string, fields: JsonObject | undefined): string | JsonObject {
  return fields === undefined ? message : { ...fields, message };
}
