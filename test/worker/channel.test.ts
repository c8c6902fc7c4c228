import { mkdtempSync, rmSync } from "node:fs";
import { createServer, Socket, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SocketChannel } from "../../src/worker/channel.js";
import { encodeFrame } from "../../src/worker/frames.js";
import type { FromPython } from "../../src/worker/messages.js";
import { chunkCase } from "./fake_template.js";
import { until } from "./real_pool.js";
import { RecordingLog } from "./recording_listener.js";

let folder: string;
let server: Server;
/** The process's end, and the sidecar's. */
let far: Socket;
let near: Socket;
let channel: SocketChannel;
let messages: FromPython[];
let closed: (string | undefined)[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "skynet-test-"));
  const accepted = new Promise<Socket>((resolve) => (server = createServer(resolve).listen(join(folder, "s"))));
  far = new Socket().connect(join(folder, "s"));
  near = await accepted;
  channel = new SocketChannel(near, new RecordingLog());
  messages = [];
  closed = [];
  channel.listen({
    message: (message) => messages.push(message),
    rows: () => undefined,
    closed: (problem) => closed.push(problem),
  });
});

afterEach(() => {
  far.destroy();
  near.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

const READY = encodeFrame(1, Buffer.from('{"type":"ready"}'));

test("everything that came before the end is told before the end", async () => {
  far.end(Buffer.concat([READY, READY]));
  await until(() => closed.length === 1, "the end");
  expect(messages).toEqual([{ type: "ready" }, { type: "ready" }]);
  expect(closed).toEqual([undefined]);
});

test("a process that goes away while megabytes are written to it is an end like any other", async () => {
  far.pause();
  channel.sendChunk(1, [chunkCase(`"${"x".repeat(8_000_000)}"`), chunkCase()]);
  far.destroy();
  await until(() => closed.length === 1, "the end");
  channel.sendChunk(2, [chunkCase()]);
  channel.send({ type: "stop" });
  channel.end();
  expect(closed).toEqual([undefined]);
});

test.each([
  ["what is not agreed", encodeFrame(1, Buffer.from("{}")), /^a message is not as agreed/],
  ["a chunk, which only the sidecar sends", encodeFrame(2, Buffer.alloc(9)), /^a chunk came from a Python process/],
])("%s ends the connection, and nothing after it is told", async (_, bad, problem) => {
  far.on("error", () => undefined);
  far.write(Buffer.concat([READY, bad, READY]));
  await until(() => closed.length === 1, "the end");
  expect(messages).toHaveLength(1);
  expect(closed[0]).toMatch(problem);
});

test("an end in the middle of a frame is told as such", async () => {
  far.end(READY.subarray(0, 10));
  await until(() => closed.length === 1, "the end");
  expect(closed[0]).toMatch(/in the middle of a frame/);
});
