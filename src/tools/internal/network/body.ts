/** At most `maxBytes` of a body; the rest is not fetched. */
export async function readBody(
  response: Response,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly cut: boolean }> {
  if (response.body === null) return { bytes: new Uint8Array(), cut: false };
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Node's web streams can be iterated; the type of the standard does not say so yet.
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), cut: length > maxBytes };
}
