/** Entry of `callgate/store`: journals, usable on their own. */
export { openJournal, readJournal } from "./journal.ts";
export type { Journal, JournalProblem, JournalRecord, ReadJournal, StoredRecord } from "./journal.ts";
export { createSessionId, findSession, listSessions, sessionPath } from "./sessions.ts";
export type { SessionSummary } from "./sessions.ts";
export { createAudit, verifyAudit } from "./audit.ts";
export type { Audit, AuditEntry, AuditOptions, AuditProblem, AuditReport } from "./audit.ts";
/** Types that the signatures above mention. */
export type { VerifyOptions } from "./audit.ts";
