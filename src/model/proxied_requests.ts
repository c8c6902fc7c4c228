import { ProxyAgent, request } from "undici";

import type { Requests } from "./provider.js";

/** As many sockets as there are calls in flight; each is kept for the next call as long as servers commonly allow. */
const CONNECTION_OPTIONS = { connections: null, pipelining: 1, keepAliveTimeout: 30_000, connect: { timeout: 10_000 } };

/** Requests to a provider by way of a proxy: through a tunnel where the provider has TLS, else handed to it whole. */
export function proxiedRequests(url: URL, proxy: URL): Requests {
  const isTunnel = url.protocol === "https:";
  const dispatcher = new ProxyAgent({ ...CONNECTION_OPTIONS, uri: proxy.href, proxyTunnel: isTunnel });
  return {
    async send({ method, path, headers, body, signal }) {
      const { statusCode, ...reply } = await request(`${url.origin}${path}`, {
        dispatcher,
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        signal,
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      return { status: statusCode, headers: reply.headers, body: reply.body };
    },
    close: () => dispatcher.destroy(),
  };
}
