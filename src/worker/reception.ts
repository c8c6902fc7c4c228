import type { Socket } from "node:net";
import { SocketChannel, type Channel } from "./channel.js";
import type { Log } from "./log.js";
import type { Hello } from "./messages.js";
import { RareWarning } from "./rare_warning.js";

/** A process that connects says hello at once. */
const HELLO_TIMEOUT_MS = 30_000;

/** Receives processes that connect, until they have said who they are. */
export class Reception {
  readonly #waiting = new Set<NodeJS.Timeout>();
  readonly #warning: RareWarning;

  /** `onHello` takes the channel over, or returns why the process is not wanted. */
  constructor(
    private readonly log: Log,
    private readonly onHello: (channel: Channel, hello: Hello) => string | undefined,
  ) {
    this.#warning = new RareWarning(log);
  }

  receive(socket: Socket): void {
    const channel = new SocketChannel(socket, this.log);
    const refuse = (why: string): void => {
      this.#warning.warn({}, `a process that connected is disconnected: ${why}`);
      channel.destroy();
    };
    const timer = setTimeout(() => {
      refuse(`it did not say hello within ${HELLO_TIMEOUT_MS / 1000} s`);
    }, HELLO_TIMEOUT_MS);
    this.#waiting.add(timer);
    const stopWaiting = (): void => {
      clearTimeout(timer);
      this.#waiting.delete(timer);
    };
    channel.listen({
      message: (message) => {
        const why = message.type === "hello" ? this.onHello(channel, message) : `it began with ${message.type}`;
        if (why !== undefined) refuse(why);
        stopWaiting();
      },
      rows: () => {
        refuse("it began with rows");
      },
      closed: stopWaiting,
    });
  }

  close(): void {
    for (const timer of this.#waiting) clearTimeout(timer);
  }
}
