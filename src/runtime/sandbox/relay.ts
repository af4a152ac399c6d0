/**
 * From the loopback of a command's own network namespace to our proxy outside: a socket that the
 * sandbox can see, and a relay inside that listens on a port, because programs reach proxies only by
 * port.
 */
import type { Grant } from "../../spec/access.ts";
import type { VisibleFile } from "./plan.ts";

/** In a separate namespace every port is free. */
const relayPort = 3128;

export interface Relayed {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly visible: readonly VisibleFile[];
}

export function relayed(argv: readonly string[], socket: string, grant: Grant, launcher: string | undefined): Relayed {
  // If the run folder is the sandbox's own, the socket is put there, so that nothing is created on the host.
  const path = grant.policy === "full-access" ? socket : "/run/callgate-proxy.sock";
  const relay = launcher === undefined ? nodeRelay(path) : [launcher, "relay", String(relayPort), path, "--"];
  return {
    argv: [...relay, ...argv],
    env: proxyEnv(`http://127.0.0.1:${relayPort}`),
    visible: [{ path, source: socket }, ...(launcher === undefined ? [] : [{ path: launcher, source: launcher }])],
  };
}

/** The variables that programs read, in both cases, because some read only one. */
export function proxyEnv(url: string): Readonly<Record<string, string>> {
  const direct = "localhost,127.0.0.1,::1";
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  const proxied = Object.fromEntries(names.map((name) => [name, url]));
  return { ...proxied, NO_PROXY: direct, no_proxy: direct, NODE_USE_ENV_PROXY: "1" };
}

/** The launcher's relay written in JavaScript, for machines without the launcher. It ends as its command ends. */
const relayScript = `
const net = require("node:net"), { spawn } = require("node:child_process");
const [port, socket, program, ...args] = process.argv.slice(1);
const relay = net.createServer((client) => {
  const proxy = net.connect(socket);
  client.on("error", () => proxy.destroy()).pipe(proxy);
  proxy.on("error", () => client.destroy()).pipe(client);
});
relay.listen(Number(port), "127.0.0.1", () => {
  const child = spawn(program, args, { stdio: "inherit" });
  child.once("error", (error) => (console.error(error.message), process.exit(error.code === "ENOENT" ? 127 : 126)));
  child.once("exit", (code, signal) => (signal === null ? process.exit(code) : process.kill(process.pid, signal)));
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
`;

function nodeRelay(socket: string): readonly string[] {
  return [process.execPath, "-e", relayScript, "--", String(relayPort), socket];
}
