import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";

import { directRequests } from "../../src/model/direct_requests.js";
import type { Requests } from "../../src/model/provider.js";

const open: { server: Server; requests: Requests }[] = [];
afterEach(async () => {
  for (const { server, requests } of open.splice(0)) {
    await requests.close();
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
});

/** A server on this machine, and the way to it. */
async function serve(answer: RequestListener) {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const requests = directRequests(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`));
  open.push({ server, requests });
  const ask = (signal = new AbortController().signal, body = "{}") => {
    const headers = { "content-length": String(Buffer.byteLength(body)) };
    return requests.send({ method: "POST", path: "/v1/chat/completions", headers, body, signal });
  };
  return { server, requests, ask };
}

describe("requests without a proxy", () => {
  test("one connection serves one call after the other", async () => {
    let connections = 0;
    const { server, ask } = await serve((_, response) => response.end("PASS"));
    server.on("connection", () => (connections += 1));
    for (let call = 0; call < 5; call++) {
      const reply = await ask();
      expect(Buffer.from((await reply.whole?.(100)) ?? []).toString()).toBe("PASS");
    }
    expect(connections).toBe(1);
  });

  test("a body comes in one piece or in many, and nothing of one that is too large", async () => {
    const { ask } = await serve((request, response) => {
      request.resume().on("end", () => {
        response.write("half ");
        response.end("and half");
      });
    });
    expect(Buffer.from((await (await ask()).whole?.(13)) ?? []).toString()).toBe("half and half");
    expect(await (await ask()).whole?.(12)).toBeUndefined();
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await ask()).body) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe("half and half");
  });

  test("the signal ends a call before its answer, within it, and before it began", async () => {
    const gone: string[] = [];
    const { server, ask } = await serve((request, response) => {
      response.on("close", () => gone.push(response.writableEnded ? "whole" : "cut"));
      let body = "";
      request
        .on("data", (piece: Buffer) => (body += piece.toString()))
        .on("end", () => {
          if (body === "half") response.write("PA");
          server.emit("asked");
        });
    });
    const before = new AbortController();
    const asked = once(server, "asked");
    const answer = ask(before.signal, "hang");
    await asked;
    before.abort(new Error("enough"));
    await expect(answer).rejects.toThrow("enough");

    const within = new AbortController();
    const reply = await ask(within.signal, "half");
    const whole = reply.whole?.(100);
    within.abort(new Error("enough"));
    await expect(whole).rejects.toThrow();

    await expect(ask(AbortSignal.abort(new Error("never")))).rejects.toThrow("never");
    await expect.poll(() => gone).toEqual(["cut", "cut"]);
  });

  test("a connection that nobody takes tells why", async () => {
    const { server, ask } = await serve(() => undefined);
    server.close();
    await once(server, "close");
    await expect(ask()).rejects.toMatchObject({ code: "ECONNREFUSED" });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
});
