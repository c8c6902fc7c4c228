/**
 * Writes a protobuf message into one piece of memory. `BinaryWriter` learns sizes as it goes, and pays for that with a buffer for each nested message;
 * with hundreds of small results in a response that is most of the cost.
 */
export class MessageWriter {
  #bytes: Buffer;
  #view: DataView;
  #at = 0;

  /** `size`: about what will be written, in bytes. */
  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** The message. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Makes room; nothing may be written for which there is none. */
  reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#at + bytes));
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }

  /** A tag, a length, or the value of a `uint32`. */
  varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#at++] = rest;
  }

  double(tag: number, value: number): void {
    this.varint(tag);
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
  }

  bytes(tag: number, value: Uint8Array): void {
    this.varint(tag);
    this.varint(value.length);
    this.raw(value);
  }

  /** `size`: the text's length in UTF-8, as `textBytes` tells. */
  text(tag: number, value: string, size: number): void {
    this.varint(tag);
    this.varint(size);
    this.#at += size === value.length ? this.#ascii(value) : this.#bytes.write(value, this.#at, size, "utf8");
  }

  /** Bytes that are fields already. */
  raw(value: Uint8Array): void {
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  /** Ids and names are short: a call into the engine costs more than their few characters. */
  #ascii(value: string): number {
    if (value.length > SHORT) return this.#bytes.write(value, this.#at, value.length, "latin1");
    for (let place = 0; place < value.length; place++) this.#bytes[this.#at + place] = value.charCodeAt(place);
    return value.length;
  }
}

const SHORT = 24;

/** The bytes of a varint. */
export function varintBytes(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x200000) return 3;
  return value < 0x10000000 ? 4 : 5;
}

/** The bytes of a field of this length, with its tag of one byte and its length. */
export function fieldBytes(length: number): number {
  return 1 + varintBytes(length) + length;
}

/** The bytes of a text in UTF-8. */
export function textBytes(value: string): number {
  if (value.length > SHORT) return Buffer.byteLength(value);
  for (let place = 0; place < value.length; place++) {
    if (value.charCodeAt(place) > 0x7f) return Buffer.byteLength(value);
  }
  return value.length;
}
