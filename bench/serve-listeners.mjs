// Listeners of the service in a process of their own, so that their reading is not counted as the service's work.
// Told by its parent: { url, token, ids, count }. Tells "connected", then how long each record was on its way.
import { createClient } from "../dist/client.js";

process.once("message", async ({ url, token, ids, count }) => {
  const client = createClient({ url, token });
  const delays = [];
  let connected = 0;
  const follow = async (id) => {
    let isConnected = false;
    for await (const event of client.events(id, -1, new AbortController().signal)) {
      if (!isConnected && ++connected === count) process.send("connected");
      isConnected = true;
      if (event.type !== "record") continue;
      delays.push(Date.now() - event.record.at);
      if (event.record.type === "turn.ended") return;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, n) => follow(ids[n % ids.length])));
  process.send({ delays: delays.toSorted((a, b) => a - b) });
  process.disconnect();
});
