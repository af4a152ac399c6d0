import { CallError } from "../../../index.ts";

/** `host:port` of an http address: what a call to it touches. */
export function hostOf(address: string): string {
  let url: URL;
  try {
    url = new URL(address);
  } catch (error) {
    throw new CallError("invalid_input", `'${address.slice(0, 200)}' is not an address.`, {
      cause: error,
      hint: "Write it whole: https://host/path",
    });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new CallError("invalid_input", `Only http and https addresses can be asked, not ${url.protocol}`);
  return `${url.hostname}:${url.port || (url.protocol === "https:" ? "443" : "80")}`;
}
