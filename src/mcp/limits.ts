/** How much of a server's output is taken at once. */

/** One message longer than this is a fault of the server, not something to hold in memory. */
export const maxMessageBytes = 32 * 1024 * 1024;

export const tooLong = `the server sent a message of more than ${maxMessageBytes / 1024 / 1024} MB`;
