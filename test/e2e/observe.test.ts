import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import OpenAI from "openai";
import { describe, expect } from "vitest";

import { caseOf, failed, plain, sideInfo, tally } from "./cases.js";
import { ScoringClient } from "./client.js";
import { MODEL, openProvider } from "./model_provider.js";
import { observationOf } from "./run_cases.js";
import { fixture, test } from "./scenario.js";
import { until } from "./until.js";

const MEASURED = fixture("tells_what_was_measured.py");

describe("a run that the engine does", () => {
  test("is measured between begin and end, and belongs to its case", async ({ start }) => {
    const provider = await openProvider({
      otherwise: { kind: "answer", usage: { prompt: 100, cached: 40, completion: 20, reasoning: 5 } },
    });
    const sidecar = await start({ metric: MEASURED, ...provider.options });
    const engine = sidecar.client.observe();

    const before = performance.now();
    const { observationId, gatewayToken } = await engine.begin("candidate 7");
    const openai = new OpenAI({ baseURL: `http://${sidecar.address}/v1`, apiKey: gatewayToken });
    await openai.chat.completions.create({ model: MODEL, messages: [{ role: "user", content: "hello" }] });
    await pause(100);
    const ended = await engine.finish(observationId);
    const wallMs = performance.now() - before;
    const [result] = await sidecar.client.score([{ ...caseOf("out"), observationId }]);

    const usd = 60 * 0.15e-6 + 40 * 0.075e-6 + 20 * 0.6e-6;
    expect(ended).toMatchObject({
      id: observationId,
      runNotMeasuredReason: "",
      costUsd: expect.closeTo(usd, 12) as number,
      costNotMeasuredReason: "",
      usage: { calls: 1, promptTokens: 100, cachedPromptTokens: 40, completionTokens: 20, reasoningTokens: 5 },
    });
    expect(ended.runMs).toBeGreaterThanOrEqual(100);
    expect(ended.runMs).toBeLessThanOrEqual(wallMs);
    expect(observationOf(result)).toEqual(ended);
    expect(sideInfo(result)).toMatchObject({
      service_cost: ended.costUsd,
      observation: { id: observationId, run_ms: ended.runMs, cost_usd: ended.costUsd, usage: { calls: 1 } },
    });
    await engine.end();
    await provider.server.close();
  });

  test("is measured apart from others that go on", async ({ start }) => {
    const provider = await openProvider();
    const sidecar = await start({ metric: MEASURED, ...provider.options });
    const [one, other] = [sidecar.client.observe(), sidecar.client.observe()];
    const runs = [await one.begin(), await one.begin(), await other.begin()];
    const ask = ({ gatewayToken }: (typeof runs)[number]) =>
      new OpenAI({ baseURL: `http://${sidecar.address}/v1`, apiKey: gatewayToken }).chat.completions.create({
        model: MODEL,
        messages: [{ role: "user", content: "hello" }],
      });

    await Promise.all(runs.flatMap((run, place) => Array.from({ length: place }, () => ask(run))));

    const [first, second, third] = runs;
    const ended = [
      await one.finish(second?.observationId ?? ""),
      await other.finish(third?.observationId ?? ""),
      await one.finish(first?.observationId ?? ""),
    ];
    expect(ended.map(({ usage }) => usage?.calls ?? 0)).toEqual([1, 2, 0]);
    await Promise.all([one.end(), other.end(), provider.server.close()]);
  });
});

describe("an observation that cannot be used", () => {
  test("is told by its case, which says what it is", async ({ start }) => {
    const { client } = await start({ metric: MEASURED });
    const engine = client.observe();
    const open = await engine.begin();
    const twice = await engine.begin();
    await engine.finish(twice.observationId);
    const observed = (observationId: string) => ({ ...caseOf("out"), observationId });

    const results = await client.score([
      observed(open.observationId),
      observed("obs-unknown"),
      observed(twice.observationId),
      observed(twice.observationId),
      caseOf("out"),
    ]);

    expect(tally(results)).toEqual({ SCORE: 2, INVALID_CASE: 3 });
    const messages = [
      [0, `observation ${open.observationId} was not ended yet; end it before its case is scored`],
      [1, expect.stringMatching(/^no observation is called "obs-unknown"; use the id /)],
      [3, `observation ${twice.observationId} belongs to another case already; observe each run`],
    ] as const;
    for (const [place, message] of messages) {
      expect(results[place] && plain(results[place])).toEqual(failed(place, "INVALID_CASE", message));
    }
    // Ended after all, it is of use.
    await engine.finish(open.observationId);
    expect(tally(await client.score([observed(open.observationId)]))).toEqual({ SCORE: 1 });
    await engine.end();
  });

  test("is told by end, and the call goes on", async ({ start }) => {
    const { client } = await start({ metric: MEASURED });
    const engine = client.observe();
    const { observationId } = await engine.begin();
    await engine.finish(observationId);

    expect(await engine.ask({ case: "end", value: { observationId } })).toMatchObject({
      case: "error",
      value: { observationId, message: `observation ${observationId} was ended before; end each one once` },
    });
    expect(await engine.ask({ case: "end", value: { observationId: "obs-unknown" } })).toMatchObject({
      case: "error",
      value: { observationId: "obs-unknown", message: expect.stringContaining("no observation is called") as string },
    });
    expect(await engine.ask(undefined)).toMatchObject({
      case: "error",
      value: { observationId: "", message: "the request says neither `begin` nor `end`" },
    });
    await engine.finish((await engine.begin()).observationId);
    await engine.end();
  });
});

describe("a client that goes away", () => {
  test.for(["ends the call", "cancels it", "breaks its connection"] as const)(
    "and %s leaves no observation open, and its token is worth nothing",
    async (how, { start }) => {
      const provider = await openProvider({ rules: [{ contains: "hang", steps: [{ kind: "hang" }] }] });
      const sidecar = await start({ metric: MEASURED, ...provider.options });
      const wire = await openWire(sidecar.address);
      const engineClient = new ScoringClient(wire.address);
      const engine = engineClient.observe();
      engine.call.on("error", () => undefined);
      const done = await engine.begin();
      await engine.finish(done.observationId);
      const left = await engine.begin();
      const openai = new OpenAI({ baseURL: `http://${sidecar.address}/v1`, apiKey: left.gatewayToken, maxRetries: 0 });
      const ask = (content: string) =>
        openai.chat.completions.create({ model: MODEL, messages: [{ role: "user", content }] });
      await ask("hello");
      const hanging = ask("hang").then(
        () => "answered",
        (error: unknown) => (error instanceof OpenAI.APIError ? String(error.status) : String(error)),
      );
      await provider.server.until(({ requests }) => requests.length === 2);

      if (how === "ends the call") await engine.end();
      else if (how === "cancels it") engine.call.cancel();
      else wire.cut();

      // A call in flight is given up, at the provider too.
      expect(await hanging).toBe("401");
      await provider.server.until(({ requests }) => requests[1]?.isAborted === true);
      await expect(ask("hello")).rejects.toMatchObject({ status: 401 });
      const results = await sidecar.client.score([
        { ...caseOf("out"), observationId: left.observationId },
        { ...caseOf("out"), observationId: done.observationId },
      ]);
      expect(tally(results)).toEqual({ INVALID_CASE: 1, SCORE: 1 });
      await until("the sidecar serves on", async () => (await sidecar.client.health()) === "SERVING");
      engineClient.close();
      wire.cut();
      await provider.server.close();
    },
  );
});

/** A wire to an address, which can be cut. */
async function openWire(address: string): Promise<{ readonly address: string; readonly cut: () => void }> {
  const ends: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(Number(address.split(":").at(-1)), "127.0.0.1");
    for (const end of [near, far]) ends.push(end.on("error", () => undefined));
    near.pipe(far).pipe(near);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const cut = (): void => {
    server.close();
    for (const end of ends) end.destroy();
  };
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, cut };
}
