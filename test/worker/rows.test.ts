import { describe, expect, test } from "vitest";
import { decodePackedRows, decodeRows } from "../../src/worker/rows.js";
import { payload, vectors } from "./vectors.js";

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");

test.each(vectors("rows"))("$name", ({ hex, chunk, finished, metric_ns, cpu_ns, wait_ns, rows }) => {
  const frame = decodeRows(payload(hex));
  expect(frame).toMatchObject({ chunk, finished });
  expect(frame.usage.metricMs).toBeCloseTo(Number(metric_ns) / 1e6, 6);
  expect(frame.usage.cpuMs).toBeCloseTo(Number(cpu_ns) / 1e6, 6);
  expect(frame.usage.coreWaitMs).toBeCloseTo(Number(wait_ns) / 1e6, 6);
  const read = frame.rows.map(({ position, kind, value, metricMs, ...row }) => ({
    position,
    kind,
    value,
    metric_ms: metricMs,
    texts: [row.text, row.detail, row.sideInfo].map(text),
  }));
  expect(read).toEqual(rows);
});

describe("what does not follow the protocol", () => {
  const [vector] = vectors("rows").filter(({ rows }) => rows.length > 1);
  const whole = payload(vector?.hex ?? "");
  const broken = (at: number, byte: number): Buffer => {
    const copy = Buffer.from(whole);
    copy[at] = byte;
    return copy;
  };

  test.each([
    ["no whole header", whole.subarray(0, 32), /^a rows frame has 32 bytes, fewer than 33$/],
    ["a row's header cut off", whole.subarray(0, 33 + 35), /^a row's header is cut off$/],
    ["a row's texts cut off", whole.subarray(0, whole.length - 1), /^a row's texts are cut off$/],
    ["another number of rows", broken(4, 200), /^a rows frame says 200 rows and holds \d+$/],
    ["a kind of row that there is not", broken(33 + 4, 5), /^a row is of kind 5; the kinds are 0 to 4$/],
  ])("%s", (_, bytes, message) => {
    expect(() => decodeRows(bytes)).toThrow(message);
  });

  test("a text's length beyond any frame", () => {
    const row = Buffer.alloc(36);
    row.fill(0xff, 24, 36);
    expect(() => decodePackedRows(row)).toThrow("a row's texts are cut off");
  });
});
