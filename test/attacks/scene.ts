/** A workspace with things around it that a confined command must not reach, and a host that listens. */
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Grant } from "../../src/spec/access.ts";

export interface Scene {
  readonly folder: string;
  readonly workspace: string;
  readonly outside: string;
  readonly home: string;
  readonly grant: Grant;
  /** The engine's environment: names the agent's socket. */
  readonly env: Readonly<Record<string, string>>;
  /** The probe program with its arguments. */
  readonly probe: readonly string[];
  close(): Promise<void>;
}

/** Not the temp folder: that one is private in every sandbox, which would make probes fail for the wrong reason. */
const place = "/var/tmp";

export async function createScene(owner?: { readonly uid: number; readonly gid: number }): Promise<Scene> {
  const folder = mkdtempSync(join(place, "callgate-attack-"));
  chmodSync(folder, 0o755);
  const [workspace, outside, home] = ["workspace", "outside", "home"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [workspace, join(workspace, ".git"), outside, home, join(home, ".ssh")]) mkdirSync(path);
  writeFileSync(join(workspace, ".git", "config"), "[core]\n");
  writeFileSync(join(outside, "victim"), "untouched\n");
  writeFileSync(join(home, ".ssh", "id_ed25519"), "a secret\n");
  symlinkSync(outside, join(workspace, "out-link"));
  const program = compileProbe(folder);
  const listeners = await listen(outside, home);
  if (owner !== undefined) give(folder, owner);
  const secret = join(home, ".ssh", "id_ed25519");
  return {
    folder,
    workspace,
    outside,
    home,
    env: { PATH: process.env["PATH"] ?? "", HOME: home, HOST_ADDRESS: hostAddress(), SSH_AUTH_SOCK: listeners.agent },
    grant: {
      policy: "workspace-write",
      confined: true,
      write: [workspace],
      protect: [".git", ".callgate"],
      mask: [join(home, ".ssh")],
      network: "off",
    },
    probe: [
      program,
      workspace,
      outside,
      secret,
      String(process.pid),
      String(listeners.tcp),
      listeners.path,
      listeners.agent,
      listeners.abstract,
      String(listeners.udp),
    ],
    async close() {
      await listeners.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function compileProbe(folder: string): string {
  const program = join(folder, "probe");
  execFileSync("gcc", ["-O1", "-pthread", "-o", program, fileURLToPath(new URL("./probe.c", import.meta.url))]);
  return program;
}

function give(folder: string, owner: { readonly uid: number; readonly gid: number }): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (name.endsWith("out-link")) lchownSync(join(folder, name), owner.uid, owner.gid);
    else if (!name.includes("out-link")) chownSync(join(folder, name), owner.uid, owner.gid);
  }
}

function hostAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}

async function listen(outside: string, home: string) {
  const servers = [createServer(), createServer(), createServer(), createServer()] as [Server, Server, Server, Server];
  const [tcp, path, agent, abstract] = servers;
  const sockets = {
    path: join(outside, "host.sock"),
    agent: join(home, "agent.sock"),
    abstract: `callgate-${process.pid}-${Date.now()}`,
  };
  await ready(tcp, { port: 0, host: "0.0.0.0" });
  await ready(path, { path: sockets.path });
  await ready(agent, { path: sockets.agent });
  await ready(abstract, { path: `\0${sockets.abstract}` });
  for (const socket of [sockets.path, sockets.agent]) chmodSync(socket, 0o777);
  const udp = createSocket("udp4");
  udp.on("message", (_message, from) => udp.send("x", from.port, from.address));
  await new Promise<void>((resolve) => udp.bind(0, "127.0.0.1", resolve));
  return {
    ...sockets,
    tcp: (tcp.address() as AddressInfo).port,
    udp: udp.address().port,
    async close() {
      udp.close();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

function ready(
  server: Server,
  at: { readonly port: number; readonly host: string } | { readonly path: string },
): Promise<void> {
  return new Promise((resolve) => server.listen(at, () => resolve()));
}
