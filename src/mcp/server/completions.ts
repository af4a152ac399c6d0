/** A list to choose from by its beginning, or a function that knows better. */
export type Completions = readonly string[] | Complete;

/** `others` are the arguments that the person has already filled in. */
export type Complete = (
  value: string,
  others: Readonly<Record<string, string>>,
) => readonly string[] | Promise<readonly string[]>;

/** What the protocol allows in one answer. */
const maxValues = 100;

export async function complete(
  completions: Completions | undefined,
  value: string,
  others: Readonly<Record<string, string>>,
): Promise<{ values: string[]; total: number; hasMore: boolean }> {
  const found =
    typeof completions === "function"
      ? await completions(value, others)
      : (completions ?? []).filter((one) => one.startsWith(value));
  return { values: found.slice(0, maxValues), total: found.length, hasMore: found.length > maxValues };
}
