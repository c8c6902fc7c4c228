import { EventEmitter } from "node:events";
import { expect, it } from "vitest";

import { BoundedWriter, type Sink, prettyPrinter } from "../../src/cli/log.js";

class FakeSink extends EventEmitter implements Sink {
  writableLength = 0;
  readonly written: string[] = [];

  write(text: string): boolean {
    this.written.push(text);
    this.writableLength += text.length;
    return true;
  }
}

it("drops what nobody reads beyond the bound, and counts it once there is room", () => {
  const sink = new FakeSink();
  const writer = new BoundedWriter(sink, 10);
  for (let entry = 0; entry < 100; entry += 1) writer.write("12345\n");
  expect(sink.written).toHaveLength(2);
  sink.writableLength = 0;
  sink.emit("drain");
  sink.writableLength = 0;
  writer.write("after\n");
  expect(JSON.parse(sink.written[2] ?? "")).toMatchObject({
    level: 40,
    dropped: 98,
    msg: "log entries were dropped, since nobody read standard error fast enough",
  });
  expect(sink.written.slice(3)).toEqual(["after\n"]);
});

it("writes no more once the reader is gone", () => {
  const sink = new FakeSink();
  const writer = new BoundedWriter(sink);
  sink.emit("error", new Error("EPIPE"));
  writer.write("x");
  expect(sink.written).toEqual([]);
});

it("makes a JSON entry readable", async () => {
  const pretty = await prettyPrinter();
  expect(pretty('{"level":40,"time":"2026-01-02T03:04:05.678Z","case":"a","msg":"careful"}\n')).toMatch(
    /^\[\d\d:\d\d:05\.678\] WARN: careful \{"case":"a"\}\n$/,
  );
  expect(pretty('{"level":40,"time":"2026-01-02T03:04:05.678Z","traceback":"a\\n  b\\n","msg":"it failed"}\n')).toMatch(
    /WARN: it failed\n {4}a\n {6}b\n$/,
  );
});
