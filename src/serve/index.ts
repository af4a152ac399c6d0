/** Entry of `callgate/serve`: sessions behind an HTTP API, for more than one user and more than one process. */
export type { Dispatcher, WakeOptions } from "./dispatcher.ts";
export { startServing } from "./http.ts";
export type { Serving } from "./http.ts";
export type { ServeOptions } from "./serve-options.ts";
export { Problem } from "./problem.ts";
export type { OpenedSession, OpenRequest, OpenSession, Undone } from "./open-session.ts";
export { openSessionFolder } from "./session-folder.ts";
export type { SessionFolder, SessionFolderOptions } from "./session-folder.ts";
export { createFolderBlobs } from "../store/packs.ts";
export type { BlobStore, PackStore } from "../store/packs.ts";
export { createS3Blobs } from "../store/s3-blobs.ts";
export type { S3BlobsOptions } from "../store/s3-blobs.ts";
export { createService } from "./service.ts";
export type { Look, Service, ServiceOptions } from "./service.ts";
export type { QuotaOptions, Quotas, SharedBooks } from "./quotas.ts";
export { openTokenFile, issueToken } from "./tenants.ts";
export type { NewToken, Principal, StoredToken, TokenStore } from "./tenants.ts";
export { openLimitFile } from "./limits.ts";
export type { LimitStore, TenantLimits } from "./limits.ts";
export { createFileStore } from "../store/file-store.ts";
export type { FileStoreOptions } from "../store/file-store.ts";
export { Fenced, KeyReused, Unavailable } from "../store/session-store.ts";
export type {
  Mail,
  NewMail,
  NewStoredSession,
  SessionChange,
  SessionQuery,
  SessionStatus,
  SessionStore,
  StoreChange,
  StoredSession,
  WaitingQuestion,
} from "../store/session-store.ts";
/** Types that the signatures above mention. */
export type { Encode } from "./events.ts";
export type { ServeMetrics } from "./metrics.ts";
export type { Rates, TenantUsage, UsageBook } from "./limits.ts";
