/**
 * Lines of a stream, split at `\n` and nowhere else. Node's own line reader also splits at U+2028 and
 * U+2029 (from Node 24 on), which JSON may contain.
 */
export async function* readLines(input: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  for await (const chunk of input) {
    const text = typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    const lines = text.split("\n");
    const last = lines.pop() ?? "";
    for (const line of lines) {
      yield withoutReturn(pieces.join("") + line);
      pieces = [];
    }
    if (last !== "") pieces.push(last);
  }
  const rest = pieces.join("") + decoder.decode();
  if (rest !== "") yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
