/** What keeps commands from asking, paging and painting where nobody answers or looks. Laid over the inherited environment, under what a request itself sets. */
export const quietEnv: Readonly<Record<string, string>> = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  GH_PAGER: "cat",
  GH_PROMPT_DISABLED: "1",
  PAGER: "cat",
  SSH_ASKPASS_REQUIRE: "never",
  DEBIAN_FRONTEND: "noninteractive",
  PIP_NO_INPUT: "1",
  NO_COLOR: "1",
  TERM: "dumb",
};

/** The same on a terminal: programs there may be asked and may paint. */
export const terminalEnv: Readonly<Record<string, string>> = {
  PAGER: "cat",
  GIT_PAGER: "cat",
  GH_PAGER: "cat",
  TERM: "xterm-256color",
};
