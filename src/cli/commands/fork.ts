/** Goes on with a copy of a recorded session; the original stays as it is. */
import { buildResumeCommand } from "../resume-command.ts";

export const command = buildResumeCommand("go on with a copy of a recorded session, under a new id", true);
