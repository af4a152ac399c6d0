/** A question to a person, with everything that is needed to answer it, and the answers. */
import { useState } from "preact/hooks";
import type { ApprovalReply } from "../src/client/index.ts";
import { toVisibleCommand } from "../src/gate/show.ts";
import type { EffectLine } from "../src/spec/effects.ts";
import type { ApprovalRequest } from "../src/spec/stages.ts";
import { Diff } from "./diff.tsx";
import { can } from "./state.ts";
import { visible } from "./text.ts";

interface ApprovalProps {
  readonly request: ApprovalRequest;
  /** False where the answer was not taken: it can be given again. */
  readonly onAnswer: ((reply: ApprovalReply) => Promise<boolean>) | undefined;
}

export function Approval({ request, onAnswer }: ApprovalProps) {
  const [words, setWords] = useState("");
  const [isSent, setSent] = useState(false);
  const { hash, reason, commands, always, diff } = request;
  const { lines = [], direct } = request.effects ?? {};
  // A line without paths tells of something that cannot be chosen: a warning, or a request that was made.
  const choosable = lines.flatMap(({ paths }, at) => (paths.length > 0 ? [at] : []));
  const [kept, setKept] = useState<ReadonlySet<number>>(new Set(choosable));
  const send = async (answer: ApprovalReply["answer"]) => {
    setSent(true);
    const message = words.trim();
    const isPart = kept.size < choosable.length;
    const keep = [...kept].flatMap((at) => lines[at]?.paths ?? []);
    const reply = { answer, hash, ...(message === "" ? {} : { message }), ...(isPart ? { keep } : {}) };
    if ((await onAnswer?.(reply)) === false) setSent(false);
  };
  const isOff = isSent || onAnswer === undefined || !can("approve");
  return (
    <div class="approval" role="group" aria-label="approval">
      <p class="reason">{visible(reason)}</p>
      {commands.length === 0 ? null : <pre class="commands">{commands.map(toVisibleCommand).join("\n")}</pre>}
      {lines.length === 0 ? null : <Effects lines={lines} kept={kept} onChange={setKept} />}
      {diff === undefined ? null : <Diff text={diff} />}
      <div class="answers">
        <button type="button" class="yes" disabled={isOff} onClick={() => void send("once")}>
          {request.effects === undefined
            ? "Yes, once"
            : kept.size === choosable.length
              ? "Keep all"
              : `Keep ${kept.size} of ${choosable.length}`}
        </button>
        <button type="button" disabled={isOff} onClick={() => void send("session")}>
          For this session
        </button>
        {direct === undefined ? null : (
          <button type="button" disabled={isOff} onClick={() => void send("direct")} title={visible(direct)}>
            Run it again directly
          </button>
        )}
        <button type="button" class="no" disabled={isOff} onClick={() => void send("no")}>
          No
        </button>
        <button type="button" class="no" disabled={isOff} onClick={() => void send("stop")}>
          No, and stop
        </button>
      </div>
      {always === undefined ? null : (
        <div class="always">
          <button type="button" disabled={isOff} onClick={() => void send("always")}>
            Always
          </button>
          <p>
            writes the rule <code>{visible(always.rule)}</code> to {visible(always.file)}, and with it allows{" "}
            {visible(always.alsoAllows)}
          </p>
        </div>
      )}
      <label class="words">
        <span>If you say no: what to do instead</span>
        <input
          value={words}
          disabled={isOff}
          placeholder="The model is told this"
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </label>
    </div>
  );
}

const kinds: Readonly<Record<EffectLine["mark"], string>> = {
  "!": "warning",
  "-": "removed",
  "~": "changed",
  "+": "added",
  git: "git",
  net: "network",
};

/** As every other place lists it: warnings and removals first, whole folders as one line, git in git's words. */
function Effects({
  lines,
  kept,
  onChange,
}: {
  readonly lines: readonly EffectLine[];
  readonly kept: ReadonlySet<number>;
  readonly onChange: (kept: ReadonlySet<number>) => void;
}) {
  return (
    <fieldset class="effects">
      <legend>What it did. Nothing is kept yet</legend>
      {lines.map((line, at) => {
        const words = (
          <>
            <span class="kind">{kinds[line.mark]}</span> {visible(line.text)}
          </>
        );
        if (line.paths.length === 0)
          return (
            <p key={at} class={kinds[line.mark]}>
              {words}
            </p>
          );
        return (
          <label key={at} class={kinds[line.mark]}>
            <input
              type="checkbox"
              checked={kept.has(at)}
              onChange={(event) => {
                const next = new Set(kept);
                if (event.currentTarget.checked) next.add(at);
                else next.delete(at);
                onChange(next);
              }}
            />
            {words}
          </label>
        );
      })}
    </fieldset>
  );
}

interface Effect {
  readonly path: string;
  readonly kind: string;
}

/** What a held run did, of a call that has ended. */
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
