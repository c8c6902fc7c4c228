import { lstatSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { fork } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ScoreService } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import type { Sidecar, SidecarOptions } from "../../src/server/sidecar.js";
import { jsonCase, type LogLine, memoryLog, start, TestClient } from "./clients.js";
import { FakeScorer } from "./fake_scorer.js";
import { received } from "./raw_http2.js";

const HAS_IPV6_LOOPBACK = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === "::1"),
);

const open: { close(): unknown }[] = [];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "listener-"));
});

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
  rmSync(folder, { recursive: true });
});

async function sidecarOn(listen: string[], options: Partial<SidecarOptions> = {}): Promise<Sidecar> {
  const sidecar = await start({ scorer: new FakeScorer(), listen, ...options });
  open.push({ close: () => sidecar.close({ drainTimeoutMs: 0 }) });
  return sidecar;
}

function dial(address: string): Socket {
  const socket = address.startsWith("unix:")
    ? connect(address.slice("unix:".length))
    : connect(Number(address.slice(address.lastIndexOf(":") + 1)), address.replace(/:\d+$/, "").replace(/[[\]]/g, ""));
  socket.on("error", () => undefined);
  return socket;
}

async function scores(sidecar: Sidecar, place = 0): Promise<number> {
  const client = new TestClient(sidecar, place);
  const { responses } = await client.call(ScoreService.method.score, [{ cases: [jsonCase("a", "{}", "1")] }]);
  client.close();
  return responses.flatMap(({ results }) => results).length;
}

describe("addresses", () => {
  test("localhost is both loopbacks, on one port that is free on both", async () => {
    const sidecar = await sidecarOn(["localhost:0"]);
    const ports = sidecar.addresses.map((address) => address.replace(/^.*:/, ""));
    const hosts = sidecar.addresses.map((address) => address.replace(/:\d+$/, ""));
    expect(hosts).toEqual(HAS_IPV6_LOOPBACK ? ["127.0.0.1", "[::1]"] : ["127.0.0.1"]);
    expect(new Set(ports).size).toBe(1);
    for (const place of sidecar.addresses.keys()) expect(await scores(sidecar, place)).toBe(1);
  });

  test.runIf(HAS_IPV6_LOOPBACK)(
    "a port that is taken on one loopback alone is an error, and nothing stays open",
    async () => {
      const other = createServer().listen(0, "::1");
      open.push(other);
      await once(other, "listening");
      const { port } = other.address() as { port: number };
      await expect(sidecarOn([`localhost:${port}`])).rejects.toThrow(
        `cannot listen on [::1]:${port}: another process listens there; stop it, or give another port`,
      );
      const again = createServer().listen(port, "127.0.0.1");
      open.push(again);
      await once(again, "listening");
    },
  );

  test("where one of several addresses cannot be had, none is kept", async () => {
    const path = join(folder, "s.sock");
    await expect(sidecarOn([`unix:${path}`, "nowhere"])).rejects.toThrow('cannot listen on "nowhere"');
    expect(() => lstatSync(path)).toThrow("ENOENT");
  });

  test("listening beyond the loopbacks is warned of", async () => {
    const lines: LogLine[] = [];
    await sidecarOn(["127.0.0.1:0"], { log: memoryLog(lines) });
    expect(lines).toEqual([]);
    await sidecarOn(["0.0.0.0:0"], { log: memoryLog(lines) });
    expect(lines).toMatchObject([{ level: "warn", fields: { host: "0.0.0.0" } }]);
  });
});

describe("a unix socket", () => {
  test("serves, can be opened by this user alone, and is gone afterwards", async () => {
    const path = join(folder, "s.sock");
    const sidecar = await sidecarOn([`unix:${path}`]);
    expect(sidecar.addresses).toEqual([`unix:${path}`]);
    expect(lstatSync(path).mode & 0o777).toBe(0o600);
    expect(await scores(sidecar)).toBe(1);
    const socket = dial(`unix:${path}`);
    socket.end("GET / HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n");
    expect(await received(socket)).toContain("HTTP/1.1 200 OK");
    await sidecar.close({ drainTimeoutMs: 0 });
    expect(() => lstatSync(path)).toThrow("ENOENT");
  });

  test("takes over the socket of a process that was killed", async () => {
    const path = join(folder, "stale.sock");
    const script = join(folder, "listens.cjs");
    writeFileSync(
      script,
      `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.send("listening"));`,
    );
    const child = fork(script);
    await once(child, "message");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(lstatSync(path).isSocket()).toBe(true);
    expect(await scores(await sidecarOn([`unix:${path}`]))).toBe(1);
  });

  test("never takes over a socket that is served, nor a file", async () => {
    const served = join(folder, "served.sock");
    await sidecarOn([`unix:${served}`]);
    await expect(sidecarOn([`unix:${served}`])).rejects.toThrow("another process listens there");
    const file = join(folder, "file");
    writeFileSync(file, "precious");
    await expect(sidecarOn([`unix:${file}`])).rejects.toThrow("a file that is not a socket stands there");
    expect(lstatSync(file).size).toBe("precious".length);
    await expect(sidecarOn([`unix:${join(folder, "no", "s.sock")}`])).rejects.toThrow("there is no folder");
  });
});

describe("the first bytes of a connection", () => {
  test("the preface of HTTP/2 may come in pieces", async () => {
    const sidecar = await sidecarOn(["127.0.0.1:0"]);
    for (const pieces of [["P", "RI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], Array.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")]) {
      const socket = dial(sidecar.addresses[0] ?? "");
      socket.setNoDelay(true);
      const answer = once(socket, "data") as Promise<[Buffer]>;
      for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
      // An empty SETTINGS frame, as every client sends first; the server's own comes back.
      socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
      const [first] = await answer;
      expect(first[3]).toBe(4);
      socket.destroy();
    }
  });

  test("a POST, which begins with the same letter, is HTTP/1.1, in pieces too", async () => {
    const sidecar = await sidecarOn(["127.0.0.1:0"]);
    const socket = dial(sidecar.addresses[0] ?? "");
    for (const piece of [
      "P",
      "OST /nothing HTTP/1.1\r\nHost: localhost\r\n",
      "Content-Length: 0\r\nConnection: close\r\n\r\n",
    ]) {
      await new Promise((resolve) => socket.write(piece, resolve));
    }
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 404 /);
  });

  test("a connection that says nothing, or the preface or half of it alone, is ended", async () => {
    const sidecar = await sidecarOn(["127.0.0.1:0"], { firstBytesTimeoutMs: 50 });
    for (const words of ["", "PRI * HT"]) {
      const socket = dial(sidecar.addresses[0] ?? "");
      socket.write(words);
      expect(await received(socket)).toBe("");
    }
    const preface = dial(sidecar.addresses[0] ?? "");
    preface.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    // The server's SETTINGS, and then the end.
    expect((await received(preface)).charCodeAt(3)).toBe(4);
    // One that has spoken is not.
    const session = connectHttp2(`http://${sidecar.addresses[0] ?? ""}`);
    await once(session, "remoteSettings");
    await received(dial(sidecar.addresses[0] ?? ""));
    expect(session.closed || session.destroyed).toBe(false);
    session.destroy();
  });

  test("a client that resets or leaves before its first byte, or in the middle, harms nobody", async () => {
    const sidecar = await sidecarOn(["127.0.0.1:0"]);
    for (const words of ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n"]) {
      for (const leave of ["resetAndDestroy", "end"] as const) {
        const socket = dial(sidecar.addresses[0] ?? "");
        await once(socket, "connect");
        if (words !== "") await new Promise((resolve) => socket.write(words, resolve));
        const closed = received(socket);
        socket[leave]();
        await closed;
      }
    }
    expect(await scores(sidecar)).toBe(1);
  });
});

describe("HTTP/1.1", () => {
  test("slow headers and slow bodies are timed out", async () => {
    const http1Timeouts = { headersMs: 100, requestMs: 200, keepAliveMs: 5_000, checkEveryMs: 20 };
    const sidecar = await sidecarOn(["127.0.0.1:0"], { http1Timeouts });
    for (const words of ["POST /x HTTP/1.1\r\nHost: localhost\r\n", `${scoreBatchHead(100)}{"cases"`]) {
      const socket = dial(sidecar.addresses[0] ?? "");
      socket.write(words);
      expect(await received(socket)).toMatch(/^HTTP\/1\.1 408 /);
    }
  });

  test("idle connections are closed after a while, and at once when the sidecar closes", async () => {
    const http1Timeouts = { headersMs: 10_000, requestMs: 10_000, keepAliveMs: 50, checkEveryMs: 1_000 };
    const brief = await sidecarOn(["127.0.0.1:0"], { http1Timeouts });
    const idle = dial(brief.addresses[0] ?? "");
    idle.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect(await received(idle)).toContain("This is a Skynet scorer");

    const sidecar = await sidecarOn(["127.0.0.1:0"], { http1Timeouts: { ...http1Timeouts, keepAliveMs: 60_000 } });
    const kept = dial(sidecar.addresses[0] ?? "");
    kept.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(kept, "data");
    const closed = received(kept);
    await sidecar.close({ drainTimeoutMs: 60_000 });
    await closed;
  });

  test.each(["evil.example", "evil.example:50051", "localhost.evil.example", "127.0.0.1.evil.example", ""])(
    "a loopback listener refuses the host %j, which a rebound name would carry",
    async (host) => {
      const sidecar = await sidecarOn(["127.0.0.1:0"]);
      const socket = dial(sidecar.addresses[0] ?? "");
      socket.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      expect(await received(socket)).toMatch(/^HTTP\/1\.1 403 /);
    },
  );

  test.each(["localhost", "localhost:50051", "127.0.0.1:1", "[::1]:50051", "sub.localhost"])(
    "it serves the host %s",
    async (host) => {
      const sidecar = await sidecarOn(["127.0.0.1:0"]);
      const socket = dial(sidecar.addresses[0] ?? "");
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(await received(socket)).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  test.each(["[", "a b", "%"])(
    "on another listener the malformed host %j is a 400, and the sidecar goes on",
    async (host) => {
      const sidecar = await sidecarOn([`unix:${join(folder, "s.sock")}`]);
      const socket = dial(sidecar.addresses[0] ?? "");
      socket.write(`${scoreBatchHead(2).replace("Host: localhost", `Host: ${host}`)}{}`);
      expect(await received(socket)).toMatch(/^HTTP\/1\.1 400 /);
      expect(await scores(sidecar)).toBe(1);
    },
  );

  test("HTTP/1.0 without a host is answered on a unix socket too", async () => {
    const sidecar = await sidecarOn([`unix:${join(folder, "s.sock")}`]);
    const socket = dial(sidecar.addresses[0] ?? "");
    socket.write(`${scoreBatchHead(2).replace("Host: localhost\r\n", "").replace("HTTP/1.1", "HTTP/1.0")}{}`);
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await scores(sidecar)).toBe(1);
  });
});

function scoreBatchHead(length: number): string {
  return [
    "POST /skynet.scoring.v1.ScoreService/ScoreBatch HTTP/1.1",
    "Host: localhost",
    "Content-Type: application/json",
    "Connection: close",
    `Content-Length: ${length}`,
    "\r\n",
  ].join("\r\n");
}
