/** The block of figures in README.md, from the text of bench/RESULTS.md. */
export function figures(results: string): string;
