/** The address is one argument to a program; no shell ever sees it. */
export async function openBrowser(page: URL): Promise<void> {
  const [program, ...words] =
    process.platform === "darwin"
      ? ["open"]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler"]
        : ["xdg-open"];
  const { spawn } = await import("node:child_process");
  const child = spawn(program, [...words, page.href], { stdio: "ignore", detached: true });
  child.on("error", () => undefined); // no browser here: the address was shown
  child.unref();
}
