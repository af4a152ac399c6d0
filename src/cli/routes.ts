/** One line per command: its name, and the file that is loaded when it is asked for. */
export const routes = {} as never;
