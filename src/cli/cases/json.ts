import { JsonTextError, expectEnd, readArray, readObject, readValue, skipBlanks } from "./json_text.js";
import type { Row } from "./row.js";
import { type CaseSource, caseFileError, checkUtf8, lineAt, readWhole, splitLines } from "./source.js";

/** JSON Lines: one object a line; blank lines are skipped. */
export async function* readJsonLines(source: CaseSource): AsyncGenerator<Row> {
  for await (const [line, text] of splitLines(source.chunks)) {
    checkUtf8(source, text, line);
    const begin = skipBlanks(text, 0);
    if (begin === text.length) continue;
    yield atLine(
      source,
      text,
      () => line,
      () => {
        const [columns, end] = readColumns(text, begin);
        expectEnd(text, end);
        return { line, columns };
      },
    );
  }
}

/** A JSON array of objects, or an object whose `cases` is one. */
export async function* readJson(source: CaseSource): AsyncGenerator<Row> {
  const text = await readWhole(source.chunks);
  checkUtf8(source, text, 1);
  if (skipBlanks(text, 0) === text.length) return;
  const lineOf = lineCounter(text);
  const begins = atLine(
    source,
    text,
    (offset) => lineAt(text, offset),
    () => findCases(text),
  );
  let ordinal = 0;
  for (const begin of begins) {
    ordinal += 1;
    const columns = atLine(source, text, lineOf, () => readColumns(text, begin)[0]);
    yield { line: lineOf(begin), ordinal, columns };
  }
}

/** Whether the text is one JSON object with an array `cases`: then it is a JSON file, even where it stands on one line. */
export function isCasesObject(text: Uint8Array): boolean {
  let found = false;
  const begin = skipBlanks(text, 0);
  readObject(text, begin, (key, at) => {
    if (key === "cases" && text[at] === OPEN_ARRAY) found = true;
  });
  return found;
}

/** Where each case begins. Checks the whole text. */
function findCases(text: Uint8Array): readonly number[] {
  const [begin, end] = readValue(text, 0);
  expectEnd(text, end);
  let list: number | undefined = text[begin] === OPEN_ARRAY ? begin : undefined;
  if (text[begin] === OPEN_OBJECT) {
    readObject(text, begin, (key, at) => {
      if (key === "cases" && text[at] === OPEN_ARRAY) list = at;
    });
  }
  if (list === undefined) {
    throw new JsonTextError('expected an array of objects, or an object whose "cases" is one', begin);
  }
  const begins: number[] = [];
  readArray(text, list, (at) => begins.push(at));
  return begins;
}

function readColumns(
  text: Uint8Array,
  begin: number,
): readonly [columns: ReadonlyMap<string, Uint8Array>, end: number] {
  if (text[begin] !== OPEN_OBJECT) {
    // What is not even JSON is told as such first.
    readValue(text, begin);
    throw new JsonTextError("expected an object for each case, whose keys are its columns", begin);
  }
  const columns = new Map<string, Uint8Array>();
  const end = readObject(text, begin, (key, valueBegin, valueEnd) => {
    if (columns.has(key))
      throw new JsonTextError(`the column ${JSON.stringify(key)} stands twice in this case`, valueBegin);
    columns.set(key, text.subarray(valueBegin, valueEnd));
  });
  return [columns, end];
}

/** Turns an error in the text into one that names the file, the line and the column. */
function atLine<T>(source: CaseSource, text: Uint8Array, lineOf: (offset: number) => number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    const line = lineOf(error.offset);
    const lineBegin =
      error.offset === 0 ? 0 : Buffer.from(text.buffer, text.byteOffset, error.offset).lastIndexOf(0x0a) + 1;
    const character = Buffer.from(text.buffer, text.byteOffset + lineBegin, error.offset - lineBegin).toString(
      "utf8",
    ).length;
    const isOther = !OPENS_JSON.has(text[skipBlanks(text, 0)] ?? 0);
    const readAs = isOther ? `; the file is read as ${source.readAs}` : "";
    throw caseFileError(source, line, `character ${String(character + 1)}: ${error.message}${readAs}`);
  }
}

/** Like `lineAt`, for offsets that mostly grow: each byte is counted once. */
function lineCounter(text: Uint8Array): (offset: number) => number {
  let line = 1;
  let counted = 0;
  return (offset) => {
    if (offset < counted) return lineAt(text, offset);
    for (let at = text.indexOf(0x0a, counted); at >= 0 && at < offset; at = text.indexOf(0x0a, at + 1)) {
      line += 1;
      counted = at + 1;
    }
    return line;
  };
}

const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;
/** Where a file begins with anything else, it is most likely of another format. */
const OPENS_JSON: ReadonlySet<number> = new Set([OPEN_ARRAY, OPEN_OBJECT]);
