import { spawn } from "node:child_process";

/** The address is one word to a program; no shell ever sees it. */
export function openBrowser(page: URL): void {
  const [program, ...words] =
    process.platform === "darwin"
      ? ["open"]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler"]
        : ["xdg-open"];
  const child = spawn(program!, [...words, page.href], { stdio: "ignore", detached: true });
  child.on("error", () => undefined); // no browser here: the address was shown
  child.unref();
}
