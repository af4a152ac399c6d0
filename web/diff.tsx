/** A unified diff in colour, a file at a time. */
import { visible } from "./text.ts";

const maxLines = 4000;

export function Diff({ text }: { readonly text: string }) {
  const lines = text.split("\n");
  const shown = lines.slice(0, maxLines);
  return (
    <pre class="unified" tabIndex={0} aria-label="changes">
      {shown.map((line, index) => (
        <span key={index} class={kindOf(line)}>
          {visible(line)}
          {"\n"}
        </span>
      ))}
      {lines.length > maxLines ? <span class="soft">{`… ${lines.length - maxLines} more lines`}</span> : null}
    </pre>
  );
}

function kindOf(line: string): string {
  if (/^(?:diff |index |--- |\+\+\+ |rename |new file|deleted file|similarity )/.test(line)) return "file";
  if (line.startsWith("@@")) return "place";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}
