/** Continues a copy of a recorded session. The original stays as it is. */
import { buildResumeCommand } from "../resume-command.ts";

export const command = buildResumeCommand("continue a copy of a recorded session, under a new id", true);
