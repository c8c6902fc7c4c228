import { extname } from "node:path";

import { UsageError } from "../exit.js";
import { CASE_FRAME_BYTES, encodeCase, encodeRequest } from "./case_encoder.js";
import { type ColumnNames, ColumnPicker } from "./columns.js";
import { readCsv } from "./csv.js";
import { isCasesObject, readJson, readJsonLines } from "./json.js";
import { JsonTextError, readValue, skipBlanks } from "./json_text.js";
import type { Row } from "./row.js";
import { CaseGaps } from "./gaps.js";
import { type CaseSource, caseError, openSource, placeOf, readWhole } from "./source.js";

export type CaseFormat = "auto" | "csv" | "json" | "jsonl";

export interface CaseFileOptions {
  /** A path, or `-` for standard input. */
  readonly file: string;
  readonly format: CaseFormat;
  readonly columns: ColumnNames;
  /** JSON text, sent with every request; `undefined`: none. */
  readonly artifact?: Uint8Array | undefined;
  /** Most cases in one request. */
  readonly batchSize: number;
  /** What the sidecar accepts as one message, in bytes. */
  readonly maxMessageBytes: number;
}

/** Every case of a file, ready to be sent. */
export interface CaseSet {
  /** The file as the user gave it, or "standard input". */
  readonly name: string;
  /** Encoded requests, in the file's order. */
  readonly requests: readonly Uint8Array[];
  /** The line on which each case begins, from 1. */
  readonly lines: readonly number[];
  /** How people are told of a case without an id: by its line, or by its place in a JSON array. */
  readonly unit: "line" | "case";
  /** What rows lack of the columns that were named. */
  readonly gaps: CaseGaps;
}

/**
 * Reads and checks a whole case file before anything is scored, so that a fault on its last line costs no metric call.
 * Cases are kept encoded. Throws `UsageError` with the file and the line.
 */
export async function readCases(options: CaseFileOptions, signal: AbortSignal): Promise<CaseSet> {
  const source = await openRows(options, signal);
  const picker = new ColumnPicker(options.columns);
  const ids = new Ids(source, options.columns.id);
  const lines: number[] = [];
  const gaps = new CaseGaps(source, options.columns, options.artifact !== undefined);
  let unit: CaseSet["unit"] = "line";
  const batches = new Batches(options);
  for await (const row of source.rows) {
    const values = picker.pick(row);
    batches.add(source, row, encodeCase(ids.read(row, values.id), values));
    gaps.add(lines.length, row, values);
    lines.push(row.line);
    if (row.ordinal !== undefined) unit = "case";
  }
  if (lines.length === 0) throw new UsageError(`${source.name} holds no case`);
  picker.checkAllSeen(source);
  ids.checkAllThere();
  return { name: source.name, requests: batches.finish(), lines, unit, gaps };
}

async function openRows(
  options: CaseFileOptions,
  signal: AbortSignal,
): Promise<CaseSource & { readonly rows: AsyncIterable<Row> }> {
  const opened = openSource(options.file, signal);
  const open = (format: keyof typeof READERS, chunks: AsyncIterable<Uint8Array>, why: string) => {
    const source = { name: opened.name, readAs: `${FORMAT_NAMES[format]} (${why})`, chunks };
    return { ...source, rows: READERS[format](source) };
  };
  if (options.format !== "auto") return open(options.format, opened.chunks, `--format ${options.format}`);
  const ending = extname(options.file);
  const format = FORMATS[ending.toLowerCase()];
  if (format !== undefined) return open(format, opened.chunks, `its name ends in ${ending}; --format says otherwise`);
  const text = await readWhole(opened.chunks);
  return open(guessFormat(text), inOnePiece(text), "its first bytes; --format says otherwise");
}

/** By the first value: a whole object on the first line is JSON Lines, any other JSON is JSON, and the rest is CSV. */
function guessFormat(text: Uint8Array): "csv" | "json" | "jsonl" {
  const begin = skipBlanks(text, 0);
  if (text[begin] === OPEN_ARRAY) return "json";
  if (text[begin] !== OPEN_OBJECT) return "csv";
  const lineEnd = text.indexOf(LINE_FEED, begin);
  const line = text.subarray(begin, lineEnd < 0 ? text.length : lineEnd);
  try {
    readValue(line, 0);
    return isCasesObject(line) ? "json" : "jsonl";
  } catch (error) {
    if (error instanceof JsonTextError) return "json";
    throw error;
  }
}

async function* inOnePiece(text: Uint8Array): AsyncGenerator<Uint8Array> {
  await Promise.resolve();
  yield text;
}

/** The ids of the cases, which must all differ; every case has an empty one where no column is named. */
class Ids {
  readonly #places = new Map<string, string>();
  #firstMissing: UsageError | undefined;

  constructor(
    private readonly source: CaseSource,
    private readonly column: string | undefined,
  ) {}

  /** An id is a string that is not empty, or a number as it is written. */
  read(row: Row, text: Uint8Array | undefined): string {
    if (this.column === undefined) return "";
    if (text === undefined) {
      // Told at the end: where no case has the column, it is its name that is wrong.
      this.#firstMissing ??= this.#wrong(row, "this case has none");
      return "";
    }
    const json = Buffer.from(text).toString("utf8");
    const id = json.startsWith('"') ? String(JSON.parse(json)) : json;
    if (id === "" || NEITHER_STRING_NOR_NUMBER.test(json)) {
      throw this.#wrong(row, `found ${json.length > 40 ? `${json.slice(0, 40)}…` : json}`);
    }
    const twin = this.#places.get(id);
    if (twin !== undefined) {
      throw caseError(this.source, row, `the id ${JSON.stringify(id)} is that of ${twin} too; ids must differ`);
    }
    this.#places.set(id, placeOf(row));
    return id;
  }

  checkAllThere(): void {
    if (this.#firstMissing !== undefined) throw this.#firstMissing;
  }

  #wrong(row: Row, found: string): UsageError {
    return caseError(this.source, row, `--id-column ${this.column ?? ""}: expected a string or a number, ${found}`);
  }
}

/** Packs cases into requests: so many, and few enough bytes that none waits behind a huge neighbour. */
class Batches {
  readonly #requests: Uint8Array[] = [];
  readonly #options: CaseFileOptions;
  #cases: Uint8Array[] = [];
  #bytes = 0;

  constructor(options: CaseFileOptions) {
    this.#options = options;
  }

  add(source: CaseSource, row: Row, item: Uint8Array): void {
    const { batchSize, maxMessageBytes, artifact } = this.#options;
    const bytes = item.length + CASE_FRAME_BYTES;
    const artifactBytes = (artifact?.length ?? 0) + 2 * CASE_FRAME_BYTES;
    if (bytes + artifactBytes > maxMessageBytes) {
      const whose = artifact === undefined ? "this case takes" : "this case and the artifact take";
      const sizes = `${whose} ${String(artifact === undefined ? bytes : bytes + artifactBytes)} bytes, and one message may have ${String(maxMessageBytes)}`;
      throw caseError(source, row, `${sizes}; raise --max-message-bytes`);
    }
    const most = Math.min(REQUEST_BYTES, maxMessageBytes - artifactBytes);
    if (this.#cases.length >= batchSize || this.#bytes + bytes > most) this.#flush();
    this.#cases.push(item);
    this.#bytes += bytes;
  }

  finish(): readonly Uint8Array[] {
    this.#flush();
    return this.#requests;
  }

  #flush(): void {
    if (this.#cases.length === 0) return;
    this.#requests.push(encodeRequest(this.#cases, this.#options.artifact));
    this.#cases = [];
    this.#bytes = 0;
  }
}

const READERS: Readonly<Record<"csv" | "json" | "jsonl", (source: CaseSource) => AsyncIterable<Row>>> = {
  csv: readCsv,
  json: readJson,
  jsonl: readJsonLines,
};

const FORMAT_NAMES = { csv: "CSV", json: "JSON", jsonl: "JSON Lines" } as const;

const FORMATS: Readonly<Record<string, "csv" | "json" | "jsonl">> = {
  ".csv": "csv",
  ".json": "json",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
};

/** How an array, an object, a word or NaN begins. */
const NEITHER_STRING_NOR_NUMBER = /^(?:[[{tfnN]|-?I)/;
/** Beyond this a request gains nothing from being larger. */
const REQUEST_BYTES = 1024 * 1024;
const LINE_FEED = 0x0a;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;
