import { Client, credentials, status, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";

/** A grpc-js client of `ScoreService/Score` that sends and receives encoded messages, so that it costs little itself. */
export class ScoreClient {
  private readonly client: Client;

  constructor(address: string) {
    this.client = new Client(address, credentials.createInsecure(), {
      "grpc.max_receive_message_length": -1,
      "grpc.enable_http_proxy": 0,
      // Neither server waits in the middle of a response until the client allows more; HTTP/2 begins with 64 KiB.
      "grpc-node.flow_control_window": 4 * 1024 * 1024,
    });
  }

  /**
   * Sends `messages` on one stream, at most `window` cases ahead of the results; resolves with the seconds from the first
   * write to the end of the stream. `onResponse` takes each response and returns how many results it held.
   */
  stream(
    messages: Iterable<Buffer>,
    casesPerMessage: number,
    onResponse: (response: Buffer) => number,
  ): Promise<number> {
    const call = this.open();
    const began = performance.now();
    return new Promise((resolve, reject) => {
      const pending = messages[Symbol.iterator]();
      let inFlight = 0;
      let ended = false;
      const send = () => {
        while (!ended && inFlight + casesPerMessage <= WINDOW_CASES) {
          const next = pending.next();
          if (next.done === true) {
            ended = true;
            call.end();
          } else {
            inFlight += casesPerMessage;
            call.write(next.value);
          }
        }
      };
      call.on("data", (response: Buffer) => {
        try {
          inFlight -= onResponse(response);
          send();
        } catch (error) {
          call.cancel();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
      // The end and the status come in either order; a stream that fails has an end too, and only its status tells.
      const end = new Promise<number>((ended) => {
        call.on("end", () => ended((performance.now() - began) / 1000));
      });
      call.on("error", reject);
      call.on("status", ({ code }: StatusObject) => {
        if (code === status.OK) resolve(end);
      });
      send();
    });
  }

  close(): void {
    this.client.close();
  }

  private open(): ClientDuplexStream<Buffer, Buffer> {
    return this.client.makeBidiStreamRequest("/skynet.scoring.v1.ScoreService/Score", identity, identity, {
      deadline: Date.now() + STREAM_DEADLINE_MS,
    });
  }
}

/** 16 messages of 256 cases: enough that no server waits for the client, and a small part of a second's work. */
const WINDOW_CASES = 4096;

/** No run takes more than a few seconds; one that hangs must end. */
const STREAM_DEADLINE_MS = 60_000;

function identity(message: Buffer): Buffer {
  return message;
}
