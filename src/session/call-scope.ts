import type { Engine } from "../router/engine.ts";
import type { CallEvent, Recorder } from "../spec/stages.ts";

/**
 * An engine as one of several sessions sees it. Models that give no ids of their own count their calls from one, so
 * on the way in every id gets a mark, and only what carries the mark comes out again, without it.
 */
export function scopeCalls(engine: Engine, mark: string): Engine {
  const add = <Call extends { readonly id: string }>(call: Call): Call => ({ ...call, id: `${mark}${call.id}` });
  const take = <Call extends { readonly id: string }>(call: Call): Call => ({
    ...call,
    id: call.id.startsWith(mark) ? call.id.slice(mark.length) : call.id,
  });
  const scoped = (recorder: Recorder): Recorder => ({
    started: (permitted) => recorder.started(take(permitted)),
    ended: (ended) => recorder.ended(take(ended)),
  });
  return {
    ...engine,
    lanes({ recorder, ...options }) {
      const lanes = engine.lanes({ ...options, ...(recorder ? { recorder: scoped(recorder) } : {}) });
      return { add: async (asked) => take(await lanes.add(add(asked))), idle: lanes.idle };
    },
    refuse: (asked, error) => take(engine.refuse(add(asked), error)),
    on: (listener) =>
      engine.on((event) => {
        const id = "call" in event ? event.call.id : event.id;
        if (id.startsWith(mark)) listener(takeEvent(event, take));
      }),
  };
}

function takeEvent(event: CallEvent, take: <Call extends { readonly id: string }>(call: Call) => Call): CallEvent {
  if (event.type === "call.asked") return { ...event, call: take(event.call) };
  if (event.type === "call.ended") return { ...event, call: take(event.call) };
  if (event.type === "approval.asked")
    return { ...take(event), request: { ...event.request, call: take(event.request.call) } };
  return take(event);
}
