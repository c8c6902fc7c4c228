import { BlockList, isIP } from "node:net";

/**
 * The proxy for a provider's URL, by HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY in either case of letters; `undefined`: none. This
 * machine itself is never reached through a proxy.
 */
export function proxyFor(url: URL, environment: NodeJS.ProcessEnv): URL | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isThisMachine(host)) return undefined;
  const scheme = url.protocol.slice(0, -1);
  const [variable, given] =
    firstSet(environment, `${scheme}_proxy`) ?? firstSet(environment, "all_proxy") ?? ([undefined, ""] as const);
  if (variable === undefined || isExcluded(host, effectivePort(url), firstSet(environment, "no_proxy")?.[1] ?? "")) {
    return undefined;
  }
  const proxy = parseProxy(given);
  if (proxy !== undefined) return proxy;
  throw new Error(
    `${variable} names no HTTP proxy (expected http://host:port or https://host:port): mend it, or add ${host} to NO_PROXY`,
  );
}

/** Lower case first, as curl does it. */
function firstSet(
  environment: NodeJS.ProcessEnv,
  name: string,
): readonly [variable: string, value: string] | undefined {
  for (const variable of [name, name.toUpperCase()]) {
    const value = environment[variable]?.trim();
    if (value !== undefined && value !== "") return [variable, value];
  }
  return undefined;
}

function parseProxy(given: string): URL | undefined {
  const text = given.includes("://") ? given : `http://${given}`;
  if (!URL.canParse(text)) return undefined;
  const proxy = new URL(text);
  return proxy.protocol === "http:" || proxy.protocol === "https:" ? proxy : undefined;
}

/** An entry is a host, which counts for its subdomains too, an address, a range such as 10.0.0.0/8, each with or without a port, or `*`. */
function isExcluded(host: string, port: number, list: string): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === "") return false;
    if (entry === "*") return true;
    if (entry.includes("/")) return isInRange(host, entry);
    const [, name = entry, entryPort] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
    if (entryPort !== undefined && Number(entryPort) !== port) return false;
    const wanted = name.toLowerCase().replace(/^\[|\]$/g, "");
    const domain = wanted.replace(/^\*?\./, "");
    return host === domain || (isIP(host) === 0 && host.endsWith(`.${domain}`));
  });
}

function isInRange(host: string, range: string): boolean {
  const [network = "", bits = ""] = range.split("/");
  const version = isIP(network);
  if (version === 0 || isIP(host) !== version || !/^\d+$/.test(bits)) return false;
  if (Number(bits) > (version === 4 ? 32 : 128)) return false;
  const family = version === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  return list.check(host, family);
}

function isThisMachine(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "::1" ||
    (isIP(host) === 4 && host.startsWith("127."))
  );
}

function effectivePort(url: URL): number {
  return Number(url.port) || (url.protocol === "https:" ? 443 : 80);
}
