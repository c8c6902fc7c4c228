import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";

import type { Log } from "../worker/log.js";
import { isLoopbackHost, type ListenAddress, ListenError } from "./listen_address.js";
import { FIRST_BYTES_TIMEOUT_MS, sniff } from "./sniff.js";
import { bindUnixSocket } from "./unix_socket.js";

/** One port for everything: HTTP/2 connections go to `http2`, HTTP/1.1 requests to `http1`. */
export interface Listener {
  /** What was bound, as clients write it: `127.0.0.1:50051`, `[::1]:50051`, `unix:/path.sock`. */
  readonly addresses: readonly string[];
  /** Takes no new connections, ends idle ones now and all others after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export interface ListenerOptions {
  readonly http1: RequestListener;
  readonly http2: (socket: Socket) => void;
  readonly log: Log;
  /** Default `FIRST_BYTES_TIMEOUT_MS`. */
  readonly firstBytesTimeoutMs?: number;
  /** Default `HTTP1_TIMEOUTS`. */
  readonly http1Timeouts?: typeof HTTP1_TIMEOUTS;
}

/** Listens on one address; for `localhost` on both loopbacks, with the same port. Rejects where it cannot, with why. */
export async function listen(address: ListenAddress, options: ListenerOptions): Promise<Listener> {
  if (address.kind === "unix") {
    const front = frontServer(options, options.http1);
    await bindUnixSocket(front.server, address.path);
    return listenerOn([front], [`unix:${address.path}`], options.log);
  }
  const fronts = address.loopback
    ? await bindLoopbacks(address.port, options)
    : [await bindTcp(address.host, address.port, options)];
  if (!address.loopback && !isLoopbackHost(address.host)) {
    const message = `listening on ${address.host}: whoever reaches this machine can run the metric; prefer localhost`;
    options.log.warn({ host: address.host, port: address.port }, message);
  }
  return listenerOn(fronts, fronts.map(boundAddress), options.log);
}

/** How long a client of HTTP/1.1 may take, in milliseconds. */
export const HTTP1_TIMEOUTS = {
  /** For the headers. Node's own default is 60 s. */
  headersMs: 10_000,
  /** For the whole request: 64 MiB at 1 MB/s fit. */
  requestMs: 120_000,
  /** Between two requests on a connection: longer than clients keep idle ones (5 to 60 s), so that none is cut as it is used again. */
  keepAliveMs: 75_000,
  /** How often the first two are looked at. */
  checkEveryMs: 5_000,
};

/** A server and everything that is connected to it, whatever it speaks. */
interface Front {
  readonly server: Server;
  readonly sockets: ReadonlySet<Socket>;
  /** Those of them that have not said yet what they speak. */
  readonly undecided: ReadonlySet<Socket>;
}

/**
 * An `http.Server` really listens, so that Node enforces its timeouts and counts its connections; but a connection reaches it
 * only once it has shown that it speaks HTTP/1.1.
 */
function frontServer(options: ListenerOptions, http1: RequestListener): Front {
  const timeouts = options.http1Timeouts ?? HTTP1_TIMEOUTS;
  const server = createServer(
    {
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
    },
    http1,
  );
  server.on("request", (_request, response) => {
    response.once("close", () => {
      // Closing has ended the connections that were idle then; this one has become so since.
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
  });
  const takeHttp1 = server.listeners("connection") as ((socket: Socket) => void)[];
  server.removeAllListeners("connection");
  const protocols = {
    http1: (socket: Socket) => {
      undecided.delete(socket);
      for (const take of takeHttp1) take.call(server, socket);
    },
    http2: (socket: Socket) => {
      undecided.delete(socket);
      options.http2(socket);
    },
  };
  const sockets = new Set<Socket>();
  const undecided = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    undecided.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      undecided.delete(socket);
    });
    sniff(socket, protocols, options.firstBytesTimeoutMs ?? FIRST_BYTES_TIMEOUT_MS);
  });
  return { server, sockets, undecided };
}

async function bindLoopbacks(port: number, options: ListenerOptions): Promise<Front[]> {
  for (let attempt = 1; ; attempt++) {
    const first = await bindTcp("127.0.0.1", port, options);
    try {
      return [first, await bindTcp("::1", portOf(first), options)];
    } catch (reason) {
      if (hasCode(reason, "EADDRNOTAVAIL", "EAFNOSUPPORT")) return [first];
      await closeServer(first.server);
      // The port that was picked on one loopback is taken on the other: pick again.
      if (port !== 0 || !hasCode(reason, "EADDRINUSE") || attempt === PICK_ATTEMPTS) throw reason;
    }
  }
}

const PICK_ATTEMPTS = 20;

async function bindTcp(host: string, port: number, options: ListenerOptions): Promise<Front> {
  const front = frontServer(options, isLoopbackHost(host) ? refusingOtherHosts(options.http1) : options.http1);
  const { server } = front;
  await new Promise<void>((resolve, reject) => {
    const fail = (reason: NodeJS.ErrnoException): void => {
      reject(explained(reason, host, port));
    };
    server.once("error", fail);
    server.listen({ host, port, exclusive: true }, () => {
      server.off("error", fail);
      resolve();
    });
  });
  return front;
}

/**
 * A page in a browser may get its own host name resolved to 127.0.0.1 and then speak to us as its own origin; its requests
 * still carry that name.
 */
function refusingOtherHosts(next: RequestListener): RequestListener {
  return (request, response) => {
    const host = request.headers.host ?? "";
    if (isLoopbackHost(host.replace(/:\d+$/, ""))) {
      next(request, response);
      return;
    }
    response.writeHead(403, { "content-type": "text/plain; charset=utf-8", connection: "close" });
    response.end("This port serves this machine alone: call it as localhost, 127.0.0.1 or [::1].\n");
  };
}

function listenerOn(fronts: readonly Front[], addresses: readonly string[], log: Log): Listener {
  for (const { server } of fronts) {
    server.on("error", (err) => log.error({ err }, "a connection could not be accepted"));
  }
  return {
    addresses,
    close: async (graceMs) => {
      for (const { undecided } of fronts) for (const socket of undecided) socket.destroy();
      const closed = Promise.all(fronts.map(({ server }) => closeServer(server)));
      const timer = setTimeout(() => {
        for (const { sockets } of fronts) for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

/** Node ends idle HTTP/1.1 connections itself when a server closes, and waits for the others. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
  });
}

function portOf({ server }: Front): number {
  return (server.address() as AddressInfo).port;
}

function boundAddress({ server }: Front): string {
  const { address, family, port } = server.address() as AddressInfo;
  return family === "IPv6" ? `[${address}]:${port}` : `${address}:${port}`;
}

function explained(reason: NodeJS.ErrnoException, host: string, port: number): Error {
  const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const why = WHY[reason.code ?? ""] ?? reason.message;
  return Object.assign(new ListenError(`cannot listen on ${address}: ${why}`, { cause: reason }), {
    code: reason.code,
  });
}

const NO_HOST = "no host of that name is known; give a name or an address of this machine, such as localhost";
const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process listens there; stop it, or give another port (0 picks one that is free)",
  EADDRNOTAVAIL: "this machine has no such address; give one of its own, such as localhost",
  EACCES: "permission denied; give a port from 1024 on",
  ENOTFOUND: NO_HOST,
  EAI_AGAIN: NO_HOST,
};

function hasCode(reason: unknown, ...codes: string[]): boolean {
  return reason instanceof Error && "code" in reason && codes.includes(String(reason.code));
}
