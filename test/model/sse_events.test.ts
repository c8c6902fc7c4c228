import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { eventData, SseEvents } from "../../src/model/sse_events.js";

/** Feeds the bytes in pieces of the given sizes, the last of which is repeated. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[Math.min(turn, sizes.length - 1)] ?? bytes.length;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 });
const texts = fc.array(fc.stringMatching(/^[a-zé🙂 :"{}]{0,12}$/u), { maxLength: 6 });
const lineEnd = fc.constantFrom("\n", "\r\n", "\r");

describe("server-sent events", () => {
  test("are found whatever their line ends are and wherever the chunks are cut; no byte is lost or changed", () => {
    fc.assert(
      fc.property(texts, lineEnd, sizes, (data, end, pieces) => {
        const bytes = Buffer.from(data.map((text) => `data: ${text}${end}${end}`).join(""));
        const events = new SseEvents();
        const found = cut(bytes, pieces).flatMap((piece) => events.push(piece));
        expect(Buffer.concat([...found, events.rest()])).toEqual(bytes);
        expect(found.filter((event) => event.length > 1).map((event) => eventData(event))).toEqual(data);
      }),
    );
  });

  test("that are mixed up in any way lose no byte", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("\r", "\n", "data:", "x", ":"), { maxLength: 40 }),
        sizes,
        (parts, pieces) => {
          const bytes = Buffer.from(parts.join(""));
          const events = new SseEvents();
          const found = cut(bytes, pieces).flatMap((piece) => events.push(piece));
          expect(Buffer.concat([...found, events.rest()])).toEqual(bytes);
        },
      ),
    );
  });

  test("have their data lines joined; comments and other fields have none", () => {
    const data = (event: string) => eventData(Buffer.from(event));
    expect(data("data: a\ndata:b\n\n")).toBe("a\nb");
    expect(data("event: x\nid: 1\ndata:  c\n\n")).toBe(" c");
    expect(data(": keep-alive\n\n")).toBe("");
  });

  test("are complete with the last byte of their blank line, not later", () => {
    const events = new SseEvents();
    expect(events.push(Buffer.from("data: a\n"))).toEqual([]);
    expect(events.push(Buffer.from("\n"))).toHaveLength(1);
    expect(events.rest()).toHaveLength(0);
  });

  test("that never end are an error, and not all of the memory", () => {
    const events = new SseEvents();
    const push = () => events.push(Buffer.alloc(17 * 1024 ** 2, "x"));
    expect(push).toThrow("an event of the provider's stream is larger than 16 MiB");
  });
});
