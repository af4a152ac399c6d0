import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createScene } from "./scene.ts";

const isRoot = process.getuid?.() === 0;
const owner = isRoot ? { uid: 65534, gid: 65534 } : undefined;

/** Never as root: half of these would change the machine. */
test("the probes succeed where nothing confines them, so their failure inside means something", async () => {
  const scene = await createScene(owner);
  try {
    const [program = "", ...args] = scene.probe;
    const { stdout } = await promisify(execFile)(program, args, { cwd: scene.workspace, env: scene.env, ...owner });
    const succeeded = stdout
      .split("\n")
      .filter((line) => line.endsWith(" ok"))
      .map((line) => line.split(" ")[0]);
    expect(succeeded).toEqual(
      expect.arrayContaining([
        "append_outside",
        "rename_outside",
        "mkdir_outside",
        "write_through_link",
        "write_home_bashrc",
        "write_git_config",
        "rename_git",
        "read_secret",
        "see_host_process",
        "trace_child",
        "read_child_memory",
        "take_descriptor",
        "gain_privileges",
        "unshare_user",
        "clone3_user",
        "io_uring",
        "userfault",
        "vsock",
        "old_calls",
        "key_join",
        "key_add",
        "connect_host",
        "connect_host_address",
        "send_udp",
        "connect_path_socket",
        "connect_agent_socket",
        "connect_abstract",
        "chmod_through_link",
        "chmod_relative",
        "chmod_proc_root",
        "chmod_proc_cwd",
        "chmod_in_folder",
        "chmod_empty_path",
        "fchmod_outside",
        "fchmod_detour_outside",
        "fchown_outside",
        "fchownat_outside",
        "futimens_outside",
        "utimensat_outside",
        "flags_outside",
        "race_chmod",
        "connect_through_link",
        "connect_proc_root",
        "connect_by_detour",
        "send_to_path",
        "race_connect",
      ]),
    );
  } finally {
    await scene.close();
  }
});
