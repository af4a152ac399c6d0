/** A certificate for `localhost` that lasts for a test. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { tempFolder } from "./cli/run.ts";

export function makeCertificate(): { readonly key: string; readonly certificate: string } {
  const folder = tempFolder("certificate");
  const key = join(folder, "key.pem");
  const certificate = join(folder, "cert.pem");
  const curve = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost";
  const args = [...curve.split(" "), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate];
  execFileSync("openssl", args, { stdio: "ignore" });
  return { key, certificate };
}
