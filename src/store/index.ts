/** Entry of `callgate/store`: what is kept on disk (journals, audit logs, calls that wait for an answer), usable on its own. */
export { openJournal, readJournal } from "./journal.ts";
export type { Journal, JournalProblem, JournalRecord, ReadJournal, StoredRecord } from "./journal.ts";
export { createSessionId, listSessions, sessionPath } from "./sessions.ts";
export type { SessionSummary } from "./sessions.ts";
export { openCallFolder } from "./call-store.ts";
export type { CallFolderOptions, CallStore, KeptCall } from "./call-store.ts";
export { openAudit, verifyAudit } from "./audit.ts";
export type { Audit, AuditEntry, AuditOptions, AuditProblem, AuditReport } from "./audit.ts";
/** Types that the signatures above mention. */
export type { VerifyOptions } from "./audit.ts";
