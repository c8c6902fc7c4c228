/** One case as the file has it: a CSV record or a JSON object. */
export interface Row {
  /** The line on which it begins, from 1. */
  readonly line: number;
  /** Its place in a JSON array, from 1, where all may stand on one line. Absent for a CSV record and a line of JSON Lines. */
  readonly ordinal?: number;
  /** Its top-level columns with their exact JSON text; a CSV cell is a JSON string. A column that is missing has no entry. */
  readonly columns: ReadonlyMap<string, Uint8Array>;
}
