// What the conformance suite starts as a client, dozens at once: it hands the scenario to the runner, where everything is
// loaded already, and ends as the client there did.
import { request } from "node:http";
import { json } from "node:stream/consumers";

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("MCP_CONFORMANCE_")));
request({ socketPath: process.env.CALLGATE_CONFORMANCE_SOCKET, method: "POST" }, async (response) => {
  const { code, said } = await json(response);
  process.stderr.write(said);
  process.exitCode = code;
}).end(JSON.stringify({ url: process.argv.at(-1), env }));
