import { Server, ServerCredentials, status, type ServerDuplexStream } from "@grpc/grpc-js";
import { afterEach, expect, test } from "vitest";
import { ScoreClient } from "../../bench/client.js";

const identity = (message: Buffer) => message;
const method = {
  path: "/skynet.scoring.v1.ScoreService/Score",
  requestStream: true,
  responseStream: true,
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
} as const;
const message = Buffer.from("m");

let stop: () => void = () => undefined;
afterEach(() => stop());

/** A client of a server that handles a stream as the test wants it. */
async function connect(handle: (call: ServerDuplexStream<Buffer, Buffer>) => void): Promise<ScoreClient> {
  const server = new Server();
  server.addService({ Score: method }, { Score: handle });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  const client = new ScoreClient(`127.0.0.1:${port}`);
  stop = () => {
    client.close();
    server.forceShutdown();
  };
  return client;
}

test("keeps at most 4,096 cases ahead of the results", async () => {
  let inFlight = 0;
  let most = 0;
  const client = await connect((call) => {
    const held: Buffer[] = [];
    const answer = () => {
      for (const each of held.splice(0)) {
        inFlight -= 256;
        call.write(each);
      }
    };
    call.on("data", (each: Buffer) => {
      inFlight += 256;
      most = Math.max(most, inFlight);
      held.push(each);
      // Only a client that waits for results makes this happen: nothing else can come until they are sent.
      if (held.length === 16) answer();
    });
    call.on("end", () => {
      answer();
      call.end();
    });
  });
  let responses = 0;
  const messages = Array.from({ length: 100 }, () => message);
  const seconds = await client.stream(messages, 256, () => {
    responses += 1;
    return 256;
  });
  expect(seconds).toBeGreaterThan(0);
  expect(responses).toBe(100);
  expect(most).toBe(4096);
});

test("fails with the status of a stream that fails, whatever came before", async () => {
  const client = await connect((call) => {
    call.write(message);
    call.emit("error", { code: status.FAILED_PRECONDITION, details: "the metric did not load" });
  });
  await expect(client.stream([message], 1, () => 1)).rejects.toThrow("the metric did not load");
});

test("fails with what is wrong with a response", async () => {
  const client = await connect((call) => {
    call.on("data", () => call.write(message));
  });
  const refuse = () => {
    throw new Error("result 3 came twice");
  };
  await expect(client.stream([message], 1, refuse)).rejects.toThrow("result 3 came twice");
});
