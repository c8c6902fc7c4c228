import { ServerInterceptingCall, type ServerInterceptor } from "@grpc/grpc-js";

/** One message of a call as it came in, serialized. */
export class ReceivedMessage {
  /** Tells the gate that whoever reads the call has taken the message. */
  consumed: () => void = () => undefined;

  constructor(readonly bytes: Uint8Array) {}
}

/**
 * Bounds by size what a call reads ahead. grpc-js reads 16 messages ahead, which is much where one is tens of megabytes. With
 * more than `limitBytes` waiting for the handler, nothing further is read, and HTTP/2 flow control stops the client.
 */
export function readGate(limitBytes: number): ServerInterceptor {
  return (_method, call) => new GatedCall(call, limitBytes);
}

/** Several messages of a usual size, and at most one of any size. */
export const READ_AHEAD_BYTES = 8 * 1024 * 1024;

class GatedCall extends ServerInterceptingCall {
  #waitingBytes = 0;
  #readHeldBack = false;

  constructor(
    call: ConstructorParameters<typeof ServerInterceptingCall>[0],
    private readonly limitBytes: number,
  ) {
    super(call);
  }

  override start(listener: Parameters<ServerInterceptingCall["start"]>[0]): void {
    super.start({
      onReceiveMetadata: (metadata) => {
        listener.onReceiveMetadata(metadata);
      },
      onReceiveMessage: (message: ReceivedMessage) => {
        this.#waitingBytes += message.bytes.length;
        message.consumed = () => {
          this.#consumed(message.bytes.length);
        };
        listener.onReceiveMessage(message);
      },
      onReceiveHalfClose: () => {
        listener.onReceiveHalfClose();
      },
      onCancel: () => {
        listener.onCancel();
      },
    });
  }

  override startRead(): void {
    if (this.#waitingBytes > this.limitBytes) this.#readHeldBack = true;
    else super.startRead();
  }

  #consumed(bytes: number): void {
    this.#waitingBytes -= bytes;
    if (!this.#readHeldBack || this.#waitingBytes > this.limitBytes) return;
    this.#readHeldBack = false;
    super.startRead();
  }
}
