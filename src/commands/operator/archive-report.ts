/** What a verification of the log's archived part has found, for operators. */
export type ArchiveReport = {
  agrees: boolean;
  segments: number;
  records: number;
  /** Empty: the segments are whole and unaltered. Of each file the first fault is named. */
  findings: { segment: number; line: number | null; problem: string }[];
  /** Fingerprint of the key that must have signed; null: this process has none. */
  signer: string | null;
};
