/**
 * Checks JSON text and tells where its values stand, without converting any: a number keeps every digit, a key keeps its
 * place. Works on the UTF-8 bytes, which the caller has checked to be UTF-8. Accepts what Python's `json` does:
 * RFC 8259, and `NaN`, `Infinity` and `-Infinity`.
 */

/** JSON text that is wrong, and the byte where that shows. */
export class JsonTextError extends Error {
  override readonly name = "JsonTextError";

  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** Checks the value that begins at `start` (blanks before it allowed). Returns where it begins and where it ends. */
export function readValue(text: Uint8Array, start: number): readonly [begin: number, end: number] {
  const begin = skipBlanks(text, start);
  return [begin, skipValue(text, begin)];
}

/** Tells each member of the object that begins at `begin`: its key, and where its value stands. Returns the object's end. */
export function readObject(
  text: Uint8Array,
  begin: number,
  member: (key: string, begin: number, end: number) => void,
): number {
  let at = skipBlanks(text, expect(text, begin, OPEN_OBJECT, "an object"));
  if (text[at] === CLOSE_OBJECT) return at + 1;
  for (;;) {
    const keyEnd = skipKey(text, at);
    const key = decodeString(text, at, keyEnd);
    const [valueBegin, valueEnd] = readValue(text, expect(text, skipBlanks(text, keyEnd), COLON, '":"'));
    member(key, valueBegin, valueEnd);
    at = skipBlanks(text, valueEnd);
    if (text[at] === CLOSE_OBJECT) return at + 1;
    at = skipBlanks(text, expect(text, at, COMMA, '"," or "}"'));
  }
}

/** Tells where each element of the array that begins at `begin` stands. Returns the array's end. */
export function readArray(text: Uint8Array, begin: number, element: (begin: number, end: number) => void): number {
  let at = skipBlanks(text, expect(text, begin, OPEN_ARRAY, "an array"));
  if (text[at] === CLOSE_ARRAY) return at + 1;
  for (;;) {
    const [elementBegin, elementEnd] = readValue(text, at);
    element(elementBegin, elementEnd);
    at = skipBlanks(text, elementEnd);
    if (text[at] === CLOSE_ARRAY) return at + 1;
    at = expect(text, at, COMMA, '"," or "]"');
  }
}

/** The first byte from `at` on that is not a JSON blank, or the text's length. */
export function skipBlanks(text: Uint8Array, at: number): number {
  let next = at;
  for (;;) {
    const byte = text[next];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return next;
    next += 1;
  }
}

/** Throws where anything but blanks follows. */
export function expectEnd(text: Uint8Array, at: number): void {
  const next = skipBlanks(text, at);
  if (next < text.length)
    throw new JsonTextError(`expected nothing after the value, found ${describe(text, next)}`, next);
}

/** The string that stands, with its quotes, in `text` from `begin` to `end`. */
export function decodeString(text: Uint8Array, begin: number, end: number): string {
  const quoted = Buffer.from(text.buffer, text.byteOffset + begin, end - begin);
  if (!quoted.includes(BACKSLASH)) return quoted.toString("utf8", 1, quoted.length - 1);
  return String(JSON.parse(quoted.toString("utf8")));
}

/** Nesting is a list, not recursion: depth costs memory and never the stack. */
function skipValue(text: Uint8Array, begin: number): number {
  const open: number[] = [];
  let at = begin;
  for (;;) {
    const byte = text[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      const close = byte === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
      at = skipBlanks(text, at + 1);
      if (text[at] !== close) {
        open.push(close);
        if (close === CLOSE_OBJECT) at = skipToMemberValue(text, at);
        continue;
      }
      at += 1;
    } else {
      at = skipScalar(text, at);
    }
    // A value has ended at `at`: leave what it closes, or go on to its neighbour.
    for (;;) {
      const close = open.at(-1);
      if (close === undefined) return at;
      at = skipBlanks(text, at);
      if (text[at] === close) {
        open.pop();
        at += 1;
        continue;
      }
      at = skipBlanks(text, expect(text, at, COMMA, close === CLOSE_OBJECT ? '"," or "}"' : '"," or "]"'));
      if (close === CLOSE_OBJECT) at = skipToMemberValue(text, at);
      break;
    }
  }
}

function skipToMemberValue(text: Uint8Array, at: number): number {
  return skipBlanks(text, expect(text, skipBlanks(text, skipKey(text, at)), COLON, '":"'));
}

function skipKey(text: Uint8Array, at: number): number {
  if (text[at] !== QUOTE) {
    throw new JsonTextError(`expected a key in double quotes, found ${describe(text, at)}`, at);
  }
  return skipString(text, at);
}

function skipScalar(text: Uint8Array, at: number): number {
  const byte = text[at];
  if (byte === QUOTE) return skipString(text, at);
  if (byte === MINUS || isDigit(byte)) return skipNumber(text, at);
  for (const word of WORDS) {
    if (byte === word[0] && matches(text, at, word)) return at + word.length;
  }
  throw new JsonTextError(`expected a value, found ${describe(text, at)}`, at);
}

function skipString(text: Uint8Array, begin: number): number {
  let at = begin + 1;
  for (;;) {
    const byte = text[at];
    if (byte === undefined) throw new JsonTextError("the string that begins here does not end", begin);
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) {
      throw new JsonTextError(`a string holds ${describe(text, at)}, which must be written as an escape`, at);
    }
    at = byte === BACKSLASH ? skipEscape(text, at) : at + 1;
  }
}

function skipEscape(text: Uint8Array, at: number): number {
  const kind = text[at + 1];
  if (kind === LETTER_U) {
    for (let place = at + 2; place < at + 6; place += 1) {
      if (!isHexDigit(text[place])) throw new JsonTextError("expected four hexadecimal digits after \\u", at);
    }
    return at + 6;
  }
  if (kind !== undefined && ESCAPES.includes(kind)) return at + 2;
  throw new JsonTextError(`expected one of "\\/bfnrtu after a backslash, found ${describe(text, at + 1)}`, at);
}

function skipNumber(text: Uint8Array, begin: number): number {
  let at = begin;
  if (text[at] === MINUS) {
    at += 1;
    if (matches(text, at, INFINITY)) return at + INFINITY.length;
  }
  if (text[at] === ZERO) at += 1;
  else at = skipDigits(text, at);
  if (text[at] === POINT) at = skipDigits(text, at + 1);
  if (text[at] === 0x65 || text[at] === 0x45) {
    const sign = text[at + 1];
    at = skipDigits(text, sign === MINUS || sign === PLUS ? at + 2 : at + 1);
  }
  return at;
}

function skipDigits(text: Uint8Array, begin: number): number {
  if (!isDigit(text[begin])) throw new JsonTextError(`expected a digit, found ${describe(text, begin)}`, begin);
  let at = begin + 1;
  while (isDigit(text[at])) at += 1;
  return at;
}

function expect(text: Uint8Array, at: number, byte: number, what: string): number {
  if (text[at] === byte) return at + 1;
  throw new JsonTextError(`expected ${what}, found ${describe(text, at)}`, at);
}

function describe(text: Uint8Array, at: number): string {
  const byte = text[at];
  if (byte === undefined) return "the end of the text";
  if (byte < 0x20 || byte === 0x7f) return CONTROL_NAMES[byte] ?? `the control character U+${hex4(byte)}`;
  const [character = ""] = Buffer.from(text.buffer, text.byteOffset + at, Math.min(4, text.length - at)).toString(
    "utf8",
  );
  return JSON.stringify(character);
}

function hex4(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(4, "0");
}

function matches(text: Uint8Array, at: number, word: Uint8Array): boolean {
  return word.every((byte, place) => text[at + place] === byte);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39;
}

function isHexDigit(byte: number | undefined): boolean {
  return isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LETTER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const ESCAPES = Buffer.from('"\\/bfnrt');
const INFINITY = Buffer.from("Infinity");
const WORDS = ["true", "false", "null", "NaN"].map((word) => Buffer.from(word)).concat(INFINITY);
const CONTROL_NAMES: Readonly<Record<number, string>> = {
  0x09: "a tab",
  0x0a: "the end of the line",
  0x0d: "a carriage return",
};
