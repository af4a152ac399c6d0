/** `internal_system_env`: environment variables, without their secrets. */
import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";

/** Names of variables whose values must not reach a model. */
const secretName =
  /key|token|secret|passw|credential|auth|cookie|session|private|signature|dsn|connection|database_url|_url$|_uri$|^npm_|cert/i;

/** Environment variables. Of those that may hold secrets, only the name is given. */
export default defineTool({
  name: "internal_system_env",
  group: "system",
  description: "Environment variables. Values that may be secrets are not shown.",
  input: {
    type: "object",
    properties: { name: { type: "string", description: "One variable; all if left out" } },
    additionalProperties: false,
  },
  parallel: true,
  mutates: false,
  run({ name }) {
    if (name !== undefined) {
      if (!Object.hasOwn(process.env, name)) throw new CallError("failed", `There is no environment variable ${name}.`);
      return mcpText({ [name]: shownValue(name, process.env[name] ?? "") });
    }
    const names = Object.keys(process.env).toSorted();
    return mcpText(Object.fromEntries(names.map((each) => [each, shownValue(each, process.env[each] ?? "")])));
  },
});

function shownValue(name: string, value: string): string {
  // Addresses often contain passwords, too.
  return secretName.test(name) || /:\/\/[^/\s]*@/.test(value) ? "(set, not shown)" : value;
}
