import type { ServerDuplexStream } from "@grpc/grpc-js";

/** Sends a call's responses no faster than the client reads them, counted in bytes. */
export class ResponseWriter {
  #unsentBytes = 0;
  #wake: () => void = () => undefined;

  constructor(
    private readonly call: Pick<ServerDuplexStream<unknown, Uint8Array>, "write">,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => {
      this.#wake();
    });
  }

  /** Resolves when there is room for the next response, or when the call was aborted. */
  async write(response: Uint8Array): Promise<void> {
    this.#unsentBytes += response.length;
    this.call.write(response, () => {
      this.#unsentBytes -= response.length;
      this.#wake();
    });
    while (this.#unsentBytes > UNSENT_BYTES && !this.signal.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Enough that the connection always has something to send; at most one response of any size beyond it. */
const UNSENT_BYTES = 256 * 1024;
