/** How much of a server's output is taken at once. */

/** One message longer than this is a fault of the server, not something to hold in memory. */
export const maxMessageBytes = 32 * 1024 * 1024;

export const tooLong = `the server sent a message of more than ${maxMessageBytes / 1024 / 1024} MB`;

/** More messages than this, one after the other in so short a time, say nothing; they only keep us busy. */
export const maxMessages = 50_000;
export const floodWindowMs = 10_000;

export const tooMany = `the server sent more than ${maxMessages} messages within ${floodWindowMs / 1000} s`;
