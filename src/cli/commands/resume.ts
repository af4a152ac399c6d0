/** Continues a recorded session. */
import { buildResumeCommand } from "../resume-command.ts";

/** Headless: `exec --resume ID PROMPT`. */
export const command = buildResumeCommand("continue a recorded session, interactively", false);
