/** The list of the tools in this folder. It is loaded only where one of them is wanted. */
import type { AnyTool } from "../../index.ts";
import codeAnalyze from "./code/analyze.ts";
import codeFormat from "./code/format.ts";
import codeSearch from "./code/search.ts";
import databaseQuery from "./database/query.ts";
import databaseUpdate from "./database/update.ts";
import fileCopy from "./file/copy.ts";
import fileDelete from "./file/delete.ts";
import fileList from "./file/list.ts";
import fileMkdir from "./file/mkdir.ts";
import fileMove from "./file/move.ts";
import fileRead from "./file/read.ts";
import fileWrite from "./file/write.ts";
import networkDownload from "./network/download.ts";
import networkRequest from "./network/request.ts";
import systemEnv from "./system/env.ts";
import systemExecute from "./system/execute.ts";
import systemInfo from "./system/info.ts";

/** The set of tools named `internal_{group}_{action}`, each in the file that its name says. */
export const internalTools: readonly AnyTool[] = [
  codeAnalyze,
  codeFormat,
  codeSearch,
  databaseQuery,
  databaseUpdate,
  fileCopy,
  fileDelete,
  fileList,
  fileMkdir,
  fileMove,
  fileRead,
  fileWrite,
  networkDownload,
  networkRequest,
  systemEnv,
  systemExecute,
  systemInfo,
];
