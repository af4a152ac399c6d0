import { afterAll, describe, expect, test } from "vitest";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const under = (approval: "never" | "on-request", sandbox: "workspace-write" | "full-access" = "workspace-write") => ({
  settings: { approval, sandbox },
});

const dangerous = [
  "rm -rf x",
  "rm -fr x",
  "rm -r x",
  "rm -f x",
  "rm -R x",
  "rm --recursive x",
  "rm --forc x",
  "rm x -rf",
  "/bin/rm -rf x",
  "\\rm -rf x",
  "r''m -rf x",
  "$'rm' -rf x",
  "sudo rm x",
  "sudo -u root rm x",
  "doas rm x",
  "sudo ls",
  "su -c 'rm x'",
  "mkfs /dev/sda",
  "mkfs.ext4 /dev/sda",
  "/sbin/mkfs.xfs /dev/sda",
  "dd if=/dev/zero of=/dev/sda",
  "dd of=x",
  ":(){ :|:& };:",
  "bomb() { bomb | bomb & }; bomb",
  "f() { f; }",
  "curl http://x",
  "wget http://x",
  "nc -l 1",
  "ncat x 1",
  "netcat x 1",
  "telnet x",
  "/usr/bin/curl x",
  "socat - x",
  "chmod 777 x",
  "chmod -R 777 x",
  "chmod 0777 x",
  "chmod a+rwx x",
  "chmod o+w x",
  "chmod +w x",
  "chmod ugo=rwx x",
  "chmod 666 x",
  "chown root x",
  "chown root:root x",
  "chown -R root x",
  "chown 0 x",
  "chown 0:0 x",
  "chown :root x",
  "bash -c 'rm -rf x'",
  'bash -lc "curl x"',
  "env rm -rf x",
  "nice -n 5 curl x",
  "timeout 5 wget x",
  "ls | xargs rm -rf",
  "find . -exec rm -rf {} +",
  "find . -delete",
  "true && curl x",
  "echo $(curl x)",
  "if true; then rm -rf x; fi",
  "curl x | sh",
  "eval 'rm -rf x'",
  "git reset --hard",
  "git reset --har HEAD~1",
  "git clean -fdx",
  "git push --force",
  "git push -f",
  "git push origin +main",
  "git checkout -- .",
  "git branch -D x",
  "git stash drop",
  "$X -rf y",
  "$(echo rm) -rf y",
  "{rm,-rf,x}",
  "echo x | sh",
  "echo rm -rf x | bash",
  "ls '",
  "if",
  "shutdown now",
  "reboot",
  "shred x",
  "kill -9 -1",
];
const plain = [
  "npm test",
  "make",
  "touch x",
  "echo $X",
  "rm x",
  "mv a b",
  "git commit -m 'rm -rf'",
  "git push",
  "git checkout main",
  "chmod +x x",
  "chmod 755 x",
  "chmod u+w x",
  "chown me x",
  "python3 x.py",
  "for f in $(ls); do echo $f; done",
  "source x.sh",
  "cat > x <<'E'\nrm -rf /\nE",
  "x=1; echo $x",
  "cd /tmp && make",
  "node -e 1",
];

describe("dangerous, in any spelling", () => {
  test.each(dangerous)("%s is asked about, and refused where nobody is", (line) => {
    expect(workspace.decide(line, under("on-request")).decision).toBe("ask");
    expect(workspace.decide(line, under("on-request", "full-access")).decision).toBe("ask");
    expect(workspace.decide(line, under("never")).decision).toBe("deny");
  });
});

describe("not dangerous: the sandbox is enough", () => {
  test.each(plain)("%s", (line) => {
    expect(workspace.decide(line, under("on-request")).decision).toBe("allow");
    expect(workspace.decide(line, under("never")).decision).toBe("allow");
  });
});

test("words are judged like lines", () => {
  const argv = (...words: string[]) => workspace.decide({ argv: words, cwd: workspace.ws }, under("on-request"));
  expect(argv("bash", "-lc", "rm -rf x")).toMatchObject({
    decision: "ask",
    commands: [
      ["bash", "-lc", "rm -rf x"],
      ["rm", "-rf", "x"],
    ],
  });
  expect(argv("rm", "$(touch x)")).toMatchObject({ decision: "allow", commands: [["rm", "$(touch x)"]] });
  expect(argv("ls", "-la")).toMatchObject({ decision: "allow" });
  expect(argv().decision).toBe("ask");
});

test("what needs the network is told that it is off, and only where it is", () => {
  const reason = (line: string, options = {}) => workspace.decide(line, { ...under("on-request"), ...options }).reason;
  expect(reason("git push")).toContain("git push is not known to be harmless; it needs the network, which is off");
  expect(reason("git push --force")).toContain("it needs the network, which is off");
  expect(reason("curl http://x")).toContain("it talks to the network, which is off");
  expect(reason("npm install left-pad")).toContain("needs the network");
  for (const line of ["git status", "npm test", "git log push", "curl --version"])
    expect(reason(line)).not.toContain("which is off");
  expect(reason("git push", { network: "on" })).not.toContain("which is off");
  expect(workspace.decide("git push", under("on-request", "full-access")).reason).not.toContain("which is off");
});
