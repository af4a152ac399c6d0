/** The tools and rules in force, and a box to try what they say of a command. Nothing is run. */
import { useEffect, useState } from "preact/hooks";
import { attempt, client } from "./state.ts";
import { visible } from "./text.ts";

interface Verdict {
  readonly decision: string;
  readonly reason: string;
  readonly rule: string | null;
  readonly commands?: readonly (readonly string[])[];
}

interface Named {
  readonly name: string;
  readonly description?: string;
}

export function Policy() {
  const [tools, setTools] = useState<readonly Named[]>([]);
  const [rules, setRules] = useState<readonly unknown[]>([]);
  const [line, setLine] = useState("");
  const [verdict, setVerdict] = useState<Verdict>();
  useEffect(() => {
    void attempt(async () => {
      const [given, written] = await Promise.all([client.tools(), client.rules()]);
      setTools(namesOf(given));
      setRules(Array.isArray(written) ? written : listIn(written, "rules"));
    });
  }, []);
  const check = () =>
    // The service answers as `callgate policy check --json` prints.
    attempt(async () => setVerdict((await client.checkPolicy(line)) as unknown as Verdict));
  return (
    <div class="policy">
      <h2>
        <a class="back" href="#/" aria-label="all sessions">
          ‹
        </a>
        Tools and rules
      </h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void check();
        }}
      >
        <label for="try">What would happen to this command?</label>
        <div class="try">
          <input
            id="try"
            value={line}
            placeholder="git push --force"
            onInput={(event) => setLine(event.currentTarget.value)}
          />
          <button type="submit" class="yes">
            Check
          </button>
        </div>
      </form>
      {verdict === undefined ? null : (
        <p class={`verdict ${verdict.decision}`} role="status">
          <strong>{verdict.decision}</strong>: {visible(verdict.reason)}
          {verdict.rule === null ? null : <code> {visible(verdict.rule)}</code>}
        </p>
      )}
      <h3>Rules</h3>
      {rules.length === 0 ? (
        <p class="soft">You have no rules of your own, so the approval mode and the sandbox decide.</p>
      ) : null}
      <ul class="plain">
        {rules.map((rule, index) => (
          <li key={index}>
            <code>{visible(describeRule(rule))}</code>
          </li>
        ))}
      </ul>
      <h3>Tools</h3>
      <dl class="tools">
        {tools.map(({ name, description }) => (
          <div key={name}>
            <dt>{visible(name)}</dt>
            <dd>{visible((description ?? "").split("\n", 1)[0] ?? "")}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** As the rules file has it. */
function describeRule(rule: unknown): string {
  if (typeof rule !== "object" || rule === null) return JSON.stringify(rule);
  return Object.entries(rule)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    .join(", ");
}

/** Whichever wire the list is written in. */
function namesOf(given: unknown): readonly Named[] {
  const list = Array.isArray(given) ? given : listIn(given, "tools");
  return list.flatMap((tool: unknown): readonly Named[] => {
    if (typeof tool !== "object" || tool === null) return [];
    const inner =
      "function" in tool && typeof tool.function === "object" && tool.function !== null ? tool.function : tool;
    const { name, description } = inner as { name?: unknown; description?: unknown };
    return typeof name === "string" ? [{ name, ...(typeof description === "string" ? { description } : {}) }] : [];
  });
}

function listIn(given: unknown, name: string): readonly unknown[] {
  const list =
    typeof given === "object" && given !== null ? (given as Readonly<Record<string, unknown>>)[name] : undefined;
  return Array.isArray(list) ? list : [];
}
