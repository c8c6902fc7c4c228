/** What the client looks at in one result; `value` is `undefined` for an error. */
export type VisitResult = (index: number, value: number | undefined, feedbackBytes: number) => void;

/**
 * Walks an encoded `ScoreResponse` and visits each result; returns how many there were. Costs a fraction of decoding with
 * generated code, so that the client, which shares the machine's cores with what it measures, takes little from it.
 */
export function scanResults(response: Buffer, visit: VisitResult): number {
  const reader = new Reader(response);
  let count = 0;
  while (reader.position < response.length) {
    const tag = reader.varint();
    if (tag !== RESULTS) {
      reader.skip(tag);
      continue;
    }
    scanResult(reader, visit);
    count += 1;
  }
  return count;
}

// Field number << 3 | wire type, of case.proto and score_service.proto.
const RESULTS = (1 << 3) | 2;
const RESULT_INDEX = (2 << 3) | 0;
const RESULT_SCORE = (3 << 3) | 2;
const SCORE_VALUE = (1 << 3) | 1;
const SCORE_FEEDBACK = (2 << 3) | 2;

function scanResult(reader: Reader, visit: VisitResult): void {
  const end = reader.lengthEnd();
  let index = 0;
  let value: number | undefined;
  let feedbackBytes = 0;
  while (reader.position < end) {
    const tag = reader.varint();
    if (tag === RESULT_INDEX) {
      index = reader.varint();
    } else if (tag === RESULT_SCORE) {
      value = 0;
      const scoreEnd = reader.lengthEnd();
      while (reader.position < scoreEnd) {
        const scoreTag = reader.varint();
        if (scoreTag === SCORE_VALUE) {
          value = reader.double();
        } else if (scoreTag === SCORE_FEEDBACK) {
          feedbackBytes = reader.lengthEnd() - reader.position;
          reader.position += feedbackBytes;
        } else {
          reader.skip(scoreTag);
        }
      }
    } else {
      reader.skip(tag);
    }
  }
  visit(index, value, feedbackBytes);
}

class Reader {
  position = 0;

  constructor(private readonly bytes: Buffer) {}

  /** At most 2^32 - 1, which is enough for tags, lengths and indexes. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.bytes.readUInt8(this.position++);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new Error(`a number at byte ${this.position} of a response is longer than 5 bytes`);
  }

  double(): number {
    const value = this.bytes.readDoubleLE(this.position);
    this.position += 8;
    return value;
  }

  /** Reads a length; returns where what follows ends. */
  lengthEnd(): number {
    const length = this.varint();
    const end = this.position + length;
    if (end > this.bytes.length) throw new Error(`a field at byte ${this.position} runs past the response's end`);
    return end;
  }

  skip(tag: number): void {
    const wireType = tag & 7;
    if (wireType === 0) this.varint();
    else if (wireType === 1) this.position += 8;
    else if (wireType === 2) this.position = this.lengthEnd();
    else if (wireType === 5) this.position += 4;
    else throw new Error(`wire type ${wireType} at byte ${this.position} of a response is not in use`);
  }
}
