/**
 * Cuts a stream of server-sent events at the events' ends. The bytes of all events, and of `rest()`, joined are those that came in, whatever
 * kind of line end they have and wherever the chunks were cut.
 */
export class SseEvents {
  #pending: Buffer = Buffer.alloc(0);
  /** Everything before this place in `#pending` is known to hold no end of an event. */
  #searched = 0;
  /** Whether the event before `#pending` ended with a carriage return, whose line feed may still come. */
  #isFeedOpen = false;

  /**
   * The events that this chunk completes, each with its blank line. One that is a line feed alone is the late end of the event before it.
   * Throws where one grows beyond all measure.
   */
  push(chunk: Uint8Array): Buffer[] {
    if (chunk.length === 0) return [];
    this.#pending = this.#pending.length === 0 ? asBuffer(chunk) : Buffer.concat([this.#pending, chunk]);
    const events: Buffer[] = [];
    let begin = 0;
    if (this.#isFeedOpen && this.#pending[0] === LF) {
      events.push(this.#pending.subarray(0, 1));
      begin = 1;
      this.#searched = 1;
    }
    for (let end = this.#endOfEvent(); end !== undefined; end = this.#endOfEvent()) {
      events.push(this.#pending.subarray(begin, end));
      begin = end;
      this.#searched = end;
    }
    this.#isFeedOpen = begin > 0 && begin === this.#pending.length && this.#pending[begin - 1] === CR;
    this.#pending = this.#pending.subarray(begin);
    this.#searched = Math.max(0, this.#pending.length - LONGEST_END);
    if (this.#pending.length > MOST_EVENT_BYTES) {
      throw new Error(`an event of the provider's stream is larger than ${MOST_EVENT_BYTES / 1024 ** 2} MiB`);
    }
    return events;
  }

  /** What came after the last complete event. */
  rest(): Buffer {
    return this.#pending;
  }

  /** The place behind the next blank line; `undefined` where none has come. */
  #endOfEvent(): number | undefined {
    const bytes = this.#pending;
    for (let place = this.#searched; place < bytes.length; place += 1) {
      const first = lineEnd(bytes, place);
      if (first === 0) continue;
      const second = lineEnd(bytes, place + first);
      if (second > 0) return place + first + second;
      place += first - 1;
    }
    return undefined;
  }
}

/** The data of an event, its lines joined; empty for a comment. */
export function eventData(event: Uint8Array): string {
  const lines = asBuffer(event)
    .toString("utf8")
    .split(/\r\n|\n|\r/);
  return lines
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(line[5] === " " ? 6 : 5))
    .join("\n");
}

/** The length of the line end at that place; 0 where there is none. */
function lineEnd(bytes: Buffer, place: number): number {
  if (bytes[place] === LF) return 1;
  if (bytes[place] !== CR) return 0;
  return bytes[place + 1] === LF ? 2 : 1;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const CR = 0x0d;
const LF = 0x0a;
/** `\r\n\r\n` */
const LONGEST_END = 4;
/** Room for an image in an event; so that a broken server cannot fill the memory. */
const MOST_EVENT_BYTES = 16 * 1024 ** 2;
