/**
 * What a template may spend. A template comes with a download, so nothing in it is trusted: every step, every
 * string and every list is counted while it is made, and passing a limit is an error with a code.
 */
export interface TemplateLimits {
  /** How many nodes are evaluated. */
  readonly steps?: number;
  /** How long it may take, in milliseconds. */
  readonly time?: number;
  /** Nesting of expressions, blocks and macro calls. */
  readonly depth?: number;
  /** How many characters one value may have. */
  readonly characters?: number;
  /** How many entries one list or object may have. */
  readonly entries?: number;
  /** The template's own length in characters. */
  readonly source?: number;
}

/** How much work a template may make, unless told otherwise. */
export const defaultLimits: Required<TemplateLimits> = {
  steps: 400_000,
  time: 2_000,
  depth: 300,
  characters: 4 * 1024 * 1024,
  entries: 100_000,
  source: 512 * 1024,
};

/** How many times the limit of a single value all values of one rendering may take together. */
const togetherCharacters = 6;
const togetherEntries = 10;

/**
 * `syntax`: this is not a template. `runtime`: an operation does not fit its values. `limit`: the template
 * asks for too much. `refused`: the template called `raise_exception`, and the
 * message is its own.
 */
export type TemplateErrorCode = "syntax" | "runtime" | "limit" | "refused";

/** A template that cannot be read or rendered. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  readonly code: TemplateErrorCode;
  constructor(code: TemplateErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Counts what one rendering spends. */
export interface Meter {
  step(): void;
  enter(): void;
  leave(): void;
  /** A string of this length is about to be made. */
  characters(count: number): void;
  /** A list or object of this many entries is about to be made. */
  entries(count: number): void;
}

/** What several renderings of one template may spend together. */
export interface Budget {
  steps: number;
}

export function createMeter(given: TemplateLimits, now: () => number, budget?: Budget): Meter {
  const limits = { ...defaultLimits, ...given };
  const end = now() + limits.time;
  let steps = 0;
  let depth = 0;
  let characters = 0;
  let entries = 0;
  const stop = (what: string): never => {
    throw new TemplateError("limit", `the template asks for too much: ${what}`);
  };
  return {
    step() {
      if (++steps > limits.steps) stop(`more than ${limits.steps} steps`);
      if (budget !== undefined && --budget.steps < 0) stop("more steps than all its probes may take together");
      if ((steps & 255) === 0 && now() > end) stop(`more than ${limits.time} ms`);
    },
    enter() {
      if (++depth > limits.depth) stop(`nesting deeper than ${limits.depth}`);
    },
    leave: () => void depth--,
    characters(count) {
      if (count > limits.characters) stop(`a text longer than ${limits.characters} characters`);
      characters += count;
      if (characters > limits.characters * togetherCharacters) stop("too much text made on the way");
    },
    entries(count) {
      if (count > limits.entries) stop(`a list longer than ${limits.entries} entries`);
      entries += count;
      if (entries > limits.entries * togetherEntries) stop("too many list entries made on the way");
    },
  };
}
