import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";

import type { CaseResult } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { ScoreRequestSchema, ScoreResponseSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import type { CaseInit } from "./cases.js";

/** Five bytes stand before each message: whether it is compressed, and its length. */
const PREFIX_BYTES = 5;

/**
 * A `Score` call over a bare HTTP/2 session. A grpc-js client reads ahead of its caller without bound; this one reads nothing
 * until it is asked to, so that the sidecar finds every window closed.
 */
export class RawStream {
  readonly #trailers: Promise<IncomingHttpHeaders>;

  private constructor(
    private readonly session: ClientHttp2Session,
    private readonly stream: ClientHttp2Stream,
  ) {
    this.#trailers = (once(stream, "trailers") as Promise<[IncomingHttpHeaders]>).then(([trailers]) => trailers);
    this.#trailers.catch(() => undefined);
    // A session that ends early shows in what is read from the stream.
    session.on("error", () => undefined);
  }

  /** `address`: `host:port`. */
  static open(address: string): RawStream {
    const session = connect(`http://${address}`);
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: "/skynet.scoring.v1.ScoreService/Score",
      [constants.HTTP2_HEADER_CONTENT_TYPE]: "application/grpc+proto",
      [constants.HTTP2_HEADER_TE]: "trailers",
    });
    return new RawStream(session, stream);
  }

  /** Sends one message; resolves when there is room for the next. */
  async send(cases: readonly CaseInit[]): Promise<void> {
    const message = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases: [...cases] }));
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(message.length, 1);
    this.stream.write(prefix);
    if (!this.stream.write(message)) await once(this.stream, "drain");
  }

  /** No more cases. */
  end(): void {
    this.stream.end();
  }

  /** Begins to read, and gives each response's results, until the sidecar ends the stream. */
  async *responses(): AsyncGenerator<readonly CaseResult[]> {
    let held: Buffer = Buffer.alloc(0);
    for await (const chunk of this.stream as AsyncIterable<Buffer>) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      while (held.length >= PREFIX_BYTES) {
        const end = PREFIX_BYTES + held.readUInt32BE(1);
        if (held.length < end) break;
        yield fromBinary(ScoreResponseSchema, held.subarray(PREFIX_BYTES, end)).results;
        held = held.subarray(end);
      }
    }
    if (held.length > 0) throw new Error(`the stream ended within a message: ${held.length} bytes are left over`);
  }

  /** The status that the sidecar ended the stream with, as a number. */
  async status(): Promise<number> {
    return Number((await this.#trailers)["grpc-status"]);
  }

  /** Goes away without a word. */
  disconnect(): void {
    this.session.destroy();
  }
}
