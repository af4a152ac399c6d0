/** What a search asks and answers, whoever does the searching. */
export interface SearchRequest {
  readonly pattern: string;
  /** A file or folder. */
  readonly path: string;
  /** Only files whose path fits this glob. */
  readonly include?: string;
  readonly ignoreCase?: boolean;
  /** Matching lines too, not only the files. */
  readonly lines: boolean;
  readonly limit: number;
}

export interface SearchHit {
  readonly path: string;
  readonly lines: readonly { readonly number: number; readonly text: string }[];
}

export interface SearchResult {
  /** What was found, the newest file first. */
  readonly hits: readonly SearchHit[];
  /** There were more. */
  readonly more: boolean;
  readonly notes: readonly string[];
}
