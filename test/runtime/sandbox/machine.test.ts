import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findProgram, findTrustedProgram, hostSockets } from "../../../src/runtime/sandbox/machine.ts";
import { freshFolder } from "./folder.ts";

function plant(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, "#!/bin/sh\n");
  chmodSync(path, 0o755);
  return path;
}

test("a program is the first executable of its name; relative folders do not count", () => {
  const folder = freshFolder();
  const real = plant(join(folder, "b"), "tool");
  mkdirSync(join(folder, "a", "tool"), { recursive: true });
  writeFileSync(join(folder, "tool"), "not executable");
  expect(findProgram("tool", { PATH: `.:${folder}:${folder}/a:${folder}/b` })).toBe(real);
  expect(findProgram("tool", { PATH: folder })).toBeUndefined();
});

test("a project cannot put its own sandbox program in front", () => {
  const project = freshFolder();
  const planted = [plant(join(project, "bin"), "only-here"), plant(join(project, "node_modules", ".bin"), "only-here")];
  const PATH = planted.map((path) => join(path, "..")).join(":");
  expect(findTrustedProgram("only-here", { PATH }, project)).toBeUndefined();
  expect(findTrustedProgram("only-here", { PATH }, "/elsewhere")).toBe(planted[0]);
  plant(join(project, "front"), "sh");
  expect(findTrustedProgram("sh", { PATH: join(project, "front") }, "/elsewhere")).toBe("/usr/bin/sh");
});

test("the sockets the environment names are the host's, however they are written", () => {
  const env = {
    SSH_AUTH_SOCK: "/home/u/agent",
    DOCKER_HOST: "unix:///home/u/docker.sock",
    DBUS_SESSION_BUS_ADDRESS: "unix:path=/home/u/bus,guid=1",
    TMUX: "/home/u/tmux,1,2",
    XDG_RUNTIME_DIR: "relative",
  };
  const found = hostSockets({ env }).slice(0, 4);
  expect(found).toEqual(["/home/u/agent", "/home/u/tmux", "/home/u/docker.sock", "/home/u/bus"]);
});

test("a socket somebody listens on is found however young it is, with its folder if that holds nothing else", async () => {
  const folder = freshFolder();
  const path = join(folder, "service.sock");
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  expect(hostSockets({ env: {} })).toEqual(expect.arrayContaining([path, folder]));
  writeFileSync(join(folder, "service.pid"), "1");
  expect(hostSockets({ env: {} })).toContain(folder);
  writeFileSync(join(folder, "notes.txt"), "something one may want to read");
  const found = hostSockets({ env: {} });
  expect(found).toContain(path);
  expect(found).not.toContain(folder);
});
