import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

/** Kept for one session, the oldest dropped first: enough to bridge a broken connection, not to relive a session. */
const maxEvents = 256;
const maxBytes = 4 * 1024 * 1024;

interface Event {
  readonly stream: string;
  readonly message: JSONRPCMessage;
  readonly bytes: number;
}

/** What was sent last, so that a client whose stream broke gets the rest of it. Messages are repeated, never calls. */
export function createEventLog(): EventStore {
  const events = new Map<number, Event>();
  let next = 0;
  let bytes = 0;
  return {
    async storeEvent(stream, message) {
      const event = { stream, message, bytes: JSON.stringify(message).length };
      events.set(next, event);
      bytes += event.bytes;
      for (const [id, oldest] of events) {
        if (events.size <= maxEvents && bytes <= maxBytes) break;
        events.delete(id);
        bytes -= oldest.bytes;
      }
      return String(next++);
    },
    getStreamIdForEventId: async (id) => events.get(Number(id))?.stream,
    async replayEventsAfter(last, { send }) {
      const stream = events.get(Number(last))?.stream;
      if (stream === undefined) throw new Error("that is no event of this session any more");
      for (const [id, event] of events)
        if (id > Number(last) && event.stream === stream && "jsonrpc" in event.message)
          await send(String(id), event.message);
      return stream;
    },
  };
}
