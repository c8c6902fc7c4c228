import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

import { HTTP1_TIMEOUTS } from "./listener.js";

/** A port for run code alone: it serves the gateway, and nothing by which run code could score itself. */
export interface RunGateway {
  /** What run code's `OPENAI_BASE_URL` is. */
  readonly url: string;
  close(): Promise<void>;
}

/** Listens on a port of 127.0.0.1 that the system picks. */
export async function listenForRuns(gateway: RequestListener): Promise<RunGateway> {
  const { headersMs, requestMs, keepAliveMs } = HTTP1_TIMEOUTS;
  const timeouts = { headersTimeout: headersMs, requestTimeout: requestMs, keepAliveTimeout: keepAliveMs };
  const server = createServer(timeouts, gateway);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
