import { expect, test } from "vitest";

import { isLoopbackHost, parseListenAddress } from "../../src/server/listen_address.js";

test.each([
  ["localhost:50051", { kind: "tcp", host: "localhost", port: 50051, loopback: true }],
  ["127.0.0.1:0", { kind: "tcp", host: "127.0.0.1", port: 0, loopback: false }],
  ["[::1]:8080", { kind: "tcp", host: "::1", port: 8080, loopback: false }],
  ["0.0.0.0:65535", { kind: "tcp", host: "0.0.0.0", port: 65535, loopback: false }],
  ["unix:/tmp/a b.sock", { kind: "unix", path: "/tmp/a b.sock" }],
  ["unix:relative.sock", { kind: "unix", path: "relative.sock" }],
  ["unix:///tmp/a.sock", { kind: "unix", path: "/tmp/a.sock" }],
])("reads %s", (text, address) => {
  expect(parseListenAddress(text)).toEqual(address);
});

test.each([
  ["50051", "it is neither"],
  [":50051", "it is neither"],
  ["::1:50051", "it is neither"],
  ["localhost", "it is neither"],
  ["localhost:port", "it is neither"],
  ["http://localhost:50051", "it is neither"],
  ["localhost:65536", "port 65536 is over 65535"],
  ["unix:", "it names no path"],
  [`unix:/${"x".repeat(103)}`, "its path takes 104 bytes, and a unix socket's may take 103"],
])("refuses %s, and says what to give", (text, why) => {
  expect(() => parseListenAddress(text)).toThrow(`cannot listen on "${text}": ${why}; give host:port`);
});

test.each([
  ["127.0.0.1", true],
  ["127.8.9.1", true],
  ["::1", true],
  ["[::1]", true],
  ["LOCALHOST", true],
  ["app.localhost", true],
  ["localhost.evil.example", false],
  ["127.0.0.1.evil.example", false],
  ["evil-localhost", false],
  ["10.0.0.1", false],
  ["0.0.0.0", false],
  ["", false],
])("%s is this machine alone: %s", (host, loopback) => {
  expect(isLoopbackHost(host)).toBe(loopback);
});
