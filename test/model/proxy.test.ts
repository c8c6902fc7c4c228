import { describe, expect, test } from "vitest";

import { proxyFor } from "../../src/model/proxy.js";

const API = "https://api.example.com/v1";

function proxy(url: string, environment: NodeJS.ProcessEnv): string | undefined {
  return proxyFor(new URL(url), environment)?.href;
}

describe("the proxy", () => {
  test.each([
    [API, { HTTPS_PROXY: "http://proxy:3128" }, "http://proxy:3128/"],
    [API, { https_proxy: "http://lower:1", HTTPS_PROXY: "http://upper:1" }, "http://lower:1/"],
    [API, { HTTP_PROXY: "http://proxy:3128" }, undefined],
    [API, { ALL_PROXY: "http://all:1" }, "http://all:1/"],
    ["http://api.example.com", { HTTP_PROXY: "http://proxy:3128" }, "http://proxy:3128/"],
    [API, { HTTPS_PROXY: "proxy.corp:3128" }, "http://proxy.corp:3128/"],
    [API, { HTTPS_PROXY: "" }, undefined],
    [API, {}, undefined],
  ])("of %s with %j is %s", (url, environment, expected) => {
    expect(proxy(url, environment)).toBe(expected);
  });

  test.each([
    "http://localhost:8000/v1",
    "http://127.0.0.1:8000/v1",
    "http://127.9.9.9/",
    "http://[::1]:8000/v1",
    "http://a.localhost/",
  ])("never stands before this machine: %s", (url) => {
    expect(proxy(url, { HTTP_PROXY: "http://proxy:1", ALL_PROXY: "http://proxy:1" })).toBeUndefined();
  });

  test.each([
    ["*", true],
    ["api.example.com", true],
    ["example.com", true],
    [".example.com", true],
    ["*.example.com", true],
    ["EXAMPLE.com", true],
    ["example.com:443", true],
    ["example.com:80", false],
    ["ample.com", false],
    ["other.com, example.com", true],
    ["other.com example.com", true],
    ["10.0.0.0/8", false],
    ["", false],
  ])("NO_PROXY=%s leaves it out: %s", (noProxy, isLeftOut) => {
    const found = proxy(API, { HTTPS_PROXY: "http://proxy:1", NO_PROXY: noProxy });
    expect(found === undefined).toBe(isLeftOut);
  });

  test.each([
    ["http://10.1.2.3/", "10.0.0.0/8", true],
    ["http://11.1.2.3/", "10.0.0.0/8", false],
    ["http://10.1.2.3/", "10.1.2.3", true],
    ["http://10.1.2.3/", "2.3", false],
    ["http://[fd00::1]/", "fd00::/8", true],
    ["http://[fd00::1]:81/", "[fd00::1]:81", true],
    ["http://10.1.2.3/", "10.0.0.0/99", false],
  ])("addresses: %s with NO_PROXY=%s is left out: %s", (url, noProxy, isLeftOut) => {
    expect(proxy(url, { http_proxy: "http://proxy:1", no_proxy: noProxy }) === undefined).toBe(isLeftOut);
  });

  test("of a kind that cannot be used is an error that does not show its password", () => {
    const secret = { HTTPS_PROXY: "socks5://user:secret@proxy:1080" };
    expect(() => proxy(API, secret)).toThrow(
      "HTTPS_PROXY names no HTTP proxy (expected http://host:port or https://host:port): mend it, or add api.example.com to NO_PROXY",
    );
  });
});
