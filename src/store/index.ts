/** Entry of `callgate/store`: journals, on their own. */
export { openJournal, readJournal } from "./journal.ts";
export type { Journal, JournalProblem, JournalRecord, ReadJournal, StoredRecord } from "./journal.ts";
export { createSessionId, findSession, listSessions, sessionPath } from "./sessions.ts";
export type { SessionSummary } from "./sessions.ts";
export { createAudit, verifyAudit } from "./audit.ts";
export type { Audit, AuditEntry, AuditOptions, AuditProblem, AuditReport } from "./audit.ts";
/** What the signatures above speak of. */
export type { VerifyOptions } from "./audit.ts";
