/** How much of a server's output is accepted at once. */

/** A longer message is a fault of the server, and is not held in memory. */
export const maxMessageBytes = 32 * 1024 * 1024;

export const tooLong = `the server sent a message of more than ${maxMessageBytes / 1024 / 1024} MB`;

/** More messages than this in so short a time carry no information, and only keep us busy. */
export const maxMessages = 50_000;
export const floodWindowMs = 10_000;

export const tooMany = `the server sent more than ${maxMessages} messages within ${floodWindowMs / 1000} s`;
