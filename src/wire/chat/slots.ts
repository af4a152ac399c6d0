/** A Chat answer is one message: its thoughts, its words, then its calls, whatever order they came in. */
export const slots = { reasoning: 0, message: 1, calls: 2 } as const;
