import { createServer, type Server, type Socket } from "node:net";
import type { PrivateFolder } from "./folder.js";

/** The two sockets that the Python processes of one template connect to (docs/worker-protocol.md). */
export class Sockets {
  readonly #frames: Server;
  readonly #life: Server;
  /** As long as they are open, their processes may live. */
  readonly #lives = new Set<Socket>();

  /** Listens in `folder`. Throws where that fails. */
  constructor(folder: PrivateFolder, onConnection: (socket: Socket) => void) {
    this.#frames = listen(folder.file("s"), onConnection);
    this.#life = listen(folder.file("life"), (socket) => {
      this.#lives.add(socket);
      socket.on("close", () => this.#lives.delete(socket));
      socket.on("error", () => undefined); // "close" follows, and is all that counts.
      socket.resume();
    });
  }

  /** Takes no further connection and hangs up `life`: where the system can, that kills every process that is left. */
  hangUp(): void {
    this.#frames.close();
    this.#life.close();
    for (const socket of this.#lives) socket.destroy();
  }
}

/** A unix socket listens as soon as `listen` returns. */
function listen(path: string, onConnection: (socket: Socket) => void): Server {
  const server = createServer(onConnection);
  let failure: Error | undefined;
  server.on("error", (error) => (failure = error));
  server.listen(path);
  if (!server.listening) throw failure ?? new Error(`the sidecar cannot listen on the unix socket ${path}`);
  return server;
}
