import { CsvError, parse } from "csv-parse";
import { isUtf8 } from "node:buffer";

import type { Row } from "./row.js";
import { type CaseSource, caseFileError, checkUtf8 } from "./source.js";

/** CSV as RFC 4180 has it: the first record names the columns, and every cell is text as it stands. */
export async function* readCsv(source: CaseSource): AsyncGenerator<Row> {
  let header: readonly string[] | undefined;
  for await (const [line, cells] of readRecords(source)) {
    if (header === undefined) {
      header = checkHeader(source, line, cells);
      continue;
    }
    const isBlankLine = cells.length === 1 && cells[0] === "" && header.length > 1;
    if (isBlankLine) continue;
    checkCellCount(source, line, cells, header);
    yield { line, columns: new Map(header.map((name, place) => [name, toJsonString(cells[place] ?? "")])) };
  }
}

function toJsonString(cell: string): Uint8Array {
  return Buffer.from(JSON.stringify(cell));
}

function checkHeader(source: CaseSource, line: number, names: readonly string[]): readonly string[] {
  const places = new Map<string, number>();
  names.forEach((name, place) => {
    const first = places.get(name) ?? place;
    places.set(name, first);
    if (name === "" && names.length > 1) {
      throw caseFileError(
        source,
        line,
        `column ${String(place + 1)} of ${String(names.length)} has no name; name it in the first line`,
      );
    }
    if (first < place) {
      throw caseFileError(
        source,
        line,
        `columns ${String(first + 1)} and ${String(place + 1)} are both called ${JSON.stringify(name)}; give each a name of its own`,
      );
    }
  });
  if (names.length === 1 && names[0] === "")
    throw caseFileError(source, line, "the first line is blank; it must name the columns");
  return names;
}

function checkCellCount(source: CaseSource, line: number, cells: readonly string[], header: readonly string[]): void {
  if (cells.length === header.length) return;
  const extra = cells.length > header.length ? `; ${HOW_TO_QUOTE}` : "";
  throw caseFileError(
    source,
    line,
    `the record has ${count(cells.length, "cell")}, but the header names ${count(header.length, "column")} (${header.join(", ")})${extra}`,
  );
}

/** The records with the lines on which they begin. Those before a record at fault come first. */
async function* readRecords(source: CaseSource): AsyncGenerator<readonly [line: number, cells: readonly string[]]> {
  const lines = new LineNumbers();
  const parser = new RecordParser();
  let header: readonly string[] | undefined;
  let first: Uint8Array | undefined;
  for await (const chunk of upToTheEnd(wholeCharacters(source, lines))) {
    first ??= chunk;
    if (chunk !== undefined) lines.add(chunk);
    const { records, failure } = await parser.take(chunk);
    for (const { cells, endByte } of records) {
      header ??= cells;
      yield [lines.current(), cells];
      lines.advanceTo(endByte);
    }
    if (failure === undefined) continue;
    const isJson = header === undefined && /^\s*[[{]/.test(String.fromCharCode(...(first?.subarray(0, 16) ?? [])));
    const why = isJson ? `this is no CSV; the file is read as ${source.readAs}` : explain(failure, header ?? []);
    throw caseFileError(source, lines.current(), why);
  }
}

/** The chunks, and `undefined` after the last. */
async function* upToTheEnd(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | undefined> {
  yield* chunks;
  yield undefined;
}

interface CsvRecord {
  readonly cells: readonly string[];
  /** Where the record ends in the file, its line end included. */
  readonly endByte: number;
}

/** csv-parse, asked instead of read from: a stream that fails would drop the records that nobody has taken yet. */
class RecordParser {
  #records: CsvRecord[] = [];
  readonly #parser = parse({
    columns: false,
    bom: false,
    relax_column_count: true,
    record_delimiter: ["\r\n", "\n"],
    on_record: (cells: string[], { bytes }) => {
      this.#records.push({ cells, endByte: bytes });
      return null;
    },
  });

  constructor() {
    // The callbacks of `take` get every error; without a listener it would end the process as well.
    this.#parser.on("error", () => undefined);
  }

  /** Gives it the next bytes, or `undefined` for the end. Returns the records that ended with them, up to one at fault. */
  async take(
    chunk: Uint8Array | undefined,
  ): Promise<{ readonly records: readonly CsvRecord[]; readonly failure: CsvError | undefined }> {
    const failure = await new Promise<CsvError | undefined>((resolve, reject) => {
      const settle = (error?: Error | null): void => {
        if (error === undefined || error === null) resolve(undefined);
        else if (error instanceof CsvError) resolve(error);
        else reject(error);
      };
      if (chunk === undefined) this.#parser.end(settle);
      else this.#parser.write(chunk, settle);
    });
    const records = this.#records;
    this.#records = [];
    return { records, failure };
  }
}

/** The chunks again, none of which ends within a character, so that each can be checked to be UTF-8. */
async function* wholeCharacters(source: CaseSource, lines: LineNumbers): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = Buffer.alloc(0);
  for await (const chunk of source.chunks) {
    const text = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = text.length - unfinishedBytes(text);
    const whole = text.subarray(0, end);
    if (!isUtf8(whole)) checkUtf8(source, whole, lines.total + 1);
    yield whole;
    rest = text.subarray(end);
  }
  if (rest.length > 0) checkUtf8(source, rest, lines.total + 1);
}

/** How many bytes at the end begin a character that is not finished. */
function unfinishedBytes(text: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= text.length; back += 1) {
    const byte = text[text.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) {
      const size = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return size > back ? back : 0;
    }
  }
  return 0;
}

/** Tells the line at which a record begins. The parser's own count takes a quoted CRLF for two lines. */
class LineNumbers {
  /** Line feeds added so far. */
  total = 0;
  #offset = 0;
  #line = 1;
  #ends: number[] = [];
  #next = 0;

  add(chunk: Uint8Array): void {
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, at + 1)) {
      this.#ends.push(this.#offset + at);
      this.total += 1;
    }
    this.#offset += chunk.length;
  }

  current(): number {
    return this.#line;
  }

  advanceTo(offset: number): void {
    for (;;) {
      const end = this.#ends[this.#next];
      if (end === undefined || end >= offset) break;
      this.#next += 1;
      this.#line += 1;
    }
    if (this.#next > 4096) {
      this.#ends = this.#ends.slice(this.#next);
      this.#next = 0;
    }
  }
}

function explain(error: CsvError, header: readonly string[]): string {
  const place = typeof error["column"] === "number" ? error["column"] : 0;
  const name = header[place];
  const column = name === undefined ? `column ${String(place + 1)}` : `column ${JSON.stringify(name)}`;
  const code: string = error.code;
  switch (code) {
    case "CSV_QUOTE_NOT_CLOSED":
      return `${column}: the cell opens with a double quote that is never closed; ${HOW_TO_QUOTE}`;
    case "CSV_INVALID_CLOSING_QUOTE":
      // csv-parse tells what followed; these two were meant to separate columns.
      return `${column}: text follows the double quote that closes the cell; ${/got "[;\t]"/.test(error.message) ? "separate columns with commas" : HOW_TO_QUOTE}`;
    case "INVALID_OPENING_QUOTE":
      return `${column}: a double quote stands within a cell that is not quoted; ${HOW_TO_QUOTE}`;
    default:
      return `${column}: ${error.message}`;
  }
}

function count(number: number, what: string): string {
  return `${String(number)} ${what}${number === 1 ? "" : "s"}`;
}

const HOW_TO_QUOTE =
  'put a cell that holds a comma, a double quote or a line break in double quotes, and double each quote inside it, as in "{""a"": 1}"';
