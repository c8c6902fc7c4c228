/** Where to listen, as asked for. */
export type ListenAddress =
  /** `loopback`: 127.0.0.1, and ::1 where there is one. */
  | { readonly kind: "tcp"; readonly host: string; readonly port: number; readonly loopback: boolean }
  | { readonly kind: "unix"; readonly path: string };

/** An address cannot be listened on; the message says in one line why, and what to do. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** Reads `host:port`, `[::1]:port`, `localhost:port` (both loopbacks) or `unix:/path.sock`. Throws a `ListenError`. */
export function parseListenAddress(text: string): ListenAddress {
  return text.startsWith(UNIX_PREFIX) ? parseUnix(text) : parseTcp(text);
}

/** Whether an address or the host of a URL is this machine alone: 127.0.0.0/8, ::1, `localhost` and what ends with it. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  if (bare === "::1" || bare === "localhost" || bare.endsWith(".localhost")) return true;
  return /^(::ffff:)?127(\.\d{1,3}){3}$/.test(bare);
}

const UNIX_PREFIX = "unix:";

/** What a socket's name may take in the kernel's own structure: 108 bytes on Linux, 104 on macOS, with a final zero. */
const MAX_SOCKET_PATH_BYTES = 103;

function parseUnix(text: string): ListenAddress {
  // `unix:///path`, as gRPC clients also write it, is the same.
  const path = text.slice(UNIX_PREFIX.length).replace(/^\/\/(?=\/)/, "");
  if (path === "") throw invalid(text, "it names no path");
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw invalid(text, `its path takes ${bytes} bytes, and a unix socket's may take ${MAX_SOCKET_PATH_BYTES}`);
  }
  return { kind: "unix", path };
}

function parseTcp(text: string): ListenAddress {
  const match = /^(?:\[(?<v6>[0-9A-Fa-f:.]+)\]|(?<name>[^:[\]/\s]+)):(?<port>\d+)$/.exec(text);
  const host = match?.groups?.["v6"] ?? match?.groups?.["name"];
  const port = Number(match?.groups?.["port"]);
  if (host === undefined) throw invalid(text, "it is neither");
  if (port > 65_535) throw invalid(text, `port ${port} is over 65535`);
  return { kind: "tcp", host, port, loopback: host.toLowerCase() === "localhost" };
}

function invalid(text: string, why: string): ListenError {
  return new ListenError(
    `cannot listen on "${text}": ${why}; give host:port (such as localhost:50051, [::1]:50051; port 0 picks one) or unix:/path.sock`,
  );
}
