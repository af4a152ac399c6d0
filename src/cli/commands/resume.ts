/** Goes on with a recorded session. */
import { buildResumeCommand } from "../resume-command.ts";

/** Headless: `exec --resume ID PROMPT`. */
export const command = buildResumeCommand("go on with a recorded session, interactively", false);
