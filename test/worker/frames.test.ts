import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  encodeFrame,
  FrameReader,
  MAX_FRAME_BYTES,
  ProtocolError,
  writeFrameHeader,
  type FrameKind,
} from "../../src/worker/frames.js";

interface Frame {
  kind: FrameKind;
  payload: Buffer;
}

function reader(): { frames: Frame[]; reader: FrameReader } {
  const frames: Frame[] = [];
  return { frames, reader: new FrameReader((kind, payload) => frames.push({ kind, payload })) };
}

/** The start of a frame: what it says of its length and kind. */
function header(length: number, kind: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32LE(length, 0);
  bytes[4] = kind;
  return bytes;
}

describe("reading", () => {
  test("frames come out as they went in, however the stream is cut", () => {
    const frame = fc.record({ kind: fc.constantFrom<FrameKind>(1, 2, 3), payload: fc.uint8Array({ maxLength: 40 }) });
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        (sent, cuts) => {
          const stream = Buffer.concat(sent.map(({ kind, payload }) => encodeFrame(kind, payload)));
          const { frames, reader: target } = reader();
          for (let at = 0, cut = 0; at < stream.length; cut++) {
            const size = cuts[cut % cuts.length] ?? 1;
            target.push(stream.subarray(at, at + size));
            at += size;
          }
          target.end();
          expect(frames.map(({ kind, payload }) => [kind, [...payload]])).toEqual(
            sent.map(({ kind, payload }) => [kind, [...payload]]),
          );
        },
      ),
    );
  });

  test("a frame that lies whole in one piece is not copied", () => {
    const { frames, reader: target } = reader();
    const piece = Buffer.concat([encodeFrame(1, Buffer.from("one")), encodeFrame(3, Buffer.from("three"))]);
    target.push(piece);
    expect(frames.map(({ payload }) => payload.buffer === piece.buffer)).toEqual([true, true]);
  });

  test.each([
    ["an empty frame", header(0, 1), "a frame has length 0; it must at least have a kind"],
    [
      "a frame over 1 GiB",
      header(MAX_FRAME_BYTES + 1, 1),
      "a frame says that it has 1073741825 bytes; the limit is 1073741824",
    ],
    ["an unknown kind", header(1, 4), "a frame is of kind 4; the kinds are 1, 2 and 3"],
    [
      "an unknown kind, before the rest has come",
      Buffer.from("GET /"),
      "a frame is of kind 47; the kinds are 1, 2 and 3",
    ],
  ])("%s is an error, whole or byte by byte", (_, bytes, message) => {
    expect(() => reader().reader.push(bytes)).toThrow(new ProtocolError(message));
    expect(() => {
      const { reader: target } = reader();
      for (const byte of bytes) target.push(Buffer.of(byte));
    }).toThrow(new ProtocolError(message));
  });

  test("an end in the middle of a frame is an error", () => {
    const { reader: target } = reader();
    target.push(encodeFrame(1, Buffer.from("whole")));
    target.end();
    target.push(header(10, 1));
    expect(() => {
      target.end();
    }).toThrow("the connection ended in the middle of a frame, after 5 bytes of it");
  });
});

test("a payload that makes its frame longer than 1 GiB is not written", () => {
  const target = Buffer.alloc(5);
  writeFrameHeader(target, 2, MAX_FRAME_BYTES - 1);
  expect(target).toEqual(header(MAX_FRAME_BYTES, 2));
  expect(() => {
    writeFrameHeader(target, 2, MAX_FRAME_BYTES);
  }).toThrow(RangeError);
});
