import { buildResumeCommand } from "../resume-command.ts";

export const command = buildResumeCommand("go on with a copy of a recorded session, under a new id", true);
