/** Entry of `callgate/ui`: a session on a web page, over the AI SDK's UI message stream (`useChat`) or AG-UI. */
export { toUiMessageStream, toUiResponse } from "./ui-stream.ts";
export type { UiMessage, UiStreamOptions } from "./ui-stream.ts";
export { toAgUi, toAgUiResponse } from "./ag-ui.ts";
export type { AgUiEvent, AgUiInput, AgUiRun } from "./ag-ui.ts";
export { answerLater, createOpenApprover } from "./approvers.ts";
export type { OpenApprover } from "./approvers.ts";
