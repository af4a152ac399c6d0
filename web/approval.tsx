/** A question to a person, with everything that is needed to answer it, and the answers. */
import { useState } from "preact/hooks";
import type { ApprovalReply } from "../src/client/index.ts";
import type { ApprovalRequest } from "../src/spec/stages.ts";
import { Diff } from "./diff.tsx";
import { can } from "./state.ts";
import { visible } from "./text.ts";

interface ApprovalProps {
  readonly request: ApprovalRequest;
  readonly onAnswer: ((reply: ApprovalReply) => void) | undefined;
}

interface Effect {
  readonly path: string;
  readonly kind: string;
}

export function Approval({ request, onAnswer }: ApprovalProps) {
  const [words, setWords] = useState("");
  const [isSent, setSent] = useState(false);
  const { hash, reason, commands, always, diff } = request;
  const effects = effectsOf(request.effects);
  const [kept, setKept] = useState<ReadonlySet<string>>(new Set(effects.map(({ path }) => path)));
  const send = (answer: ApprovalReply["answer"]) => {
    setSent(true);
    const message = words.trim();
    const isPart = effects.length > 0 && kept.size < effects.length;
    onAnswer?.({ answer, hash, ...(message === "" ? {} : { message }), ...(isPart ? { keep: [...kept] } : {}) });
  };
  const isOff = isSent || onAnswer === undefined || !can("approve");
  return (
    <div class="approval" role="group" aria-label="approval">
      <p class="reason">{visible(reason)}</p>
      {commands.length === 0 ? null : (
        <pre class="commands">{commands.map((command) => visible(command.join(" "))).join("\n")}</pre>
      )}
      {effects.length === 0 ? null : <Effects effects={effects} kept={kept} onChange={setKept} />}
      {diff === undefined ? null : <Diff text={diff} />}
      <div class="answers">
        <button type="button" class="yes" disabled={isOff} onClick={() => send("once")}>
          {effects.length > 0 ? (kept.size === effects.length ? "Keep all" : `Keep ${kept.size}`) : "Yes, once"}
        </button>
        <button type="button" disabled={isOff} onClick={() => send("session")}>
          For this session
        </button>
        {always === undefined ? null : (
          <button
            type="button"
            disabled={isOff}
            onClick={() => send("always")}
            title={`writes ${always.rule} to ${always.file}`}
          >
            Always: <code>{visible(always.rule)}</code>
          </button>
        )}
        {request.effects?.direct === undefined ? null : (
          <button type="button" disabled={isOff} onClick={() => send("direct")} title={visible(request.effects.direct)}>
            Run it again directly
          </button>
        )}
        <button type="button" class="no" disabled={isOff} onClick={() => send("no")}>
          No
        </button>
        <button type="button" class="no" disabled={isOff} onClick={() => send("stop")}>
          No, and stop
        </button>
      </div>
      {always === undefined ? null : <p class="soft">'Always' also allows: {visible(always.alsoAllows)}</p>}
      <label class="words">
        <span class="soft">What to do instead (told to the model with a no)</span>
        <input value={words} disabled={isOff} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
    </div>
  );
}

/** Removals first: they are what a person must not overlook. */
function Effects({
  effects,
  kept,
  onChange,
}: {
  readonly effects: readonly Effect[];
  readonly kept: ReadonlySet<string>;
  readonly onChange: (kept: ReadonlySet<string>) => void;
}) {
  const sorted = effects.toSorted((a, b) => Number(b.kind === "removed") - Number(a.kind === "removed"));
  return (
    <fieldset class="effects">
      <legend>What it did in a held copy</legend>
      {sorted.map(({ path, kind }) => (
        <label key={path} class={kind}>
          <input
            type="checkbox"
            checked={kept.has(path)}
            onChange={(event) => {
              const next = new Set(kept);
              if (event.currentTarget.checked) next.add(path);
              else next.delete(path);
              onChange(next);
            }}
          />
          <span class="kind">{kind}</span> {visible(path)}
        </label>
      ))}
    </fieldset>
  );
}

/** What a held run did, of a question or of a call that has ended. */
export function effectsOf(given: unknown): readonly Effect[] {
  const list = Array.isArray(given)
    ? given
    : typeof given === "object" && given !== null && "list" in given && Array.isArray(given.list)
      ? given.list
      : [];
  return list.flatMap((entry: unknown): readonly Effect[] => {
    if (typeof entry !== "object" || entry === null) return [];
    const { path, kind } = entry as { path?: unknown; kind?: unknown };
    return typeof path === "string" ? [{ path, kind: String(kind) }] : [];
  });
}
