import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";

import { caseOf, casesOf, plain, scored, tally } from "./cases.js";
import { statusOf } from "./client.js";
import { peakMemory } from "./processes.js";
import { RawStream } from "./raw_stream.js";
import { fixture, test } from "./scenario.js";
import { within } from "./until.js";

const MB = 1_000_000;

describe("a client that reads nothing for ten seconds", () => {
  test("slows its 200,000 cases down; memory stays flat, and every result arrives", async ({ start }) => {
    const sidecar = await start("measures_length.py");
    const stream = RawStream.open(sidecar.address);
    const batches = 200;
    const cases = casesOf(1000, "an output of some thirty letters", "case", { question: "and an input" });
    let sent = 0;
    const sending = (async () => {
      for (; sent < batches; sent += 1) await stream.send(cases);
      stream.end();
    })();

    await pause(10_000);

    expect(sent).toBeLessThan(batches);
    expect(peakMemory(sidecar.pid)).toBeLessThan(250 * MB);
    const seen = new Uint8Array(batches * 1000);
    for await (const results of stream.responses()) {
      for (const { index, outcome } of results)
        if (outcome.case === "score" && outcome.value.value === 32) seen[index] = (seen[index] ?? 0) + 1;
    }
    await within("every case to be sent", sending);
    expect(await stream.status()).toBe(0);
    expect(seen.every((times) => times === 1)).toBe(true);
    expect(peakMemory(sidecar.pid)).toBeLessThan(250 * MB);
    stream.disconnect();
  });
});

describe("sixteen cases of 20 MB on one stream", () => {
  test("take less than 400 MB", async ({ start }) => {
    const sidecar = await start("measures_length.py");
    const large = caseOf("x".repeat(20 * MB));

    const results = await sidecar.client.score(
      Array.from({ length: 16 }, () => large),
      { batch: 1 },
    );

    expect(results.map(plain)).toEqual(results.map((_, place) => scored(place, 20 * MB, "Fine.")));
    expect(peakMemory(sidecar.pid)).toBeLessThan(400 * MB);
  });
});

describe("a message over --max-message-bytes", () => {
  test("fails its call with both numbers, and no other", async ({ start }) => {
    const sidecar = await start({ metric: fixture("measures_length.py"), args: ["--max-message-bytes", "1MiB"] });
    const tooLarge = [caseOf("x".repeat(2 * MB))];
    const fine = sidecar.client.score(casesOf(2000, "abc"));

    for (const call of [() => sidecar.client.score(tooLarge), () => sidecar.client.scoreBatch(tooLarge)]) {
      expect(await statusOf(call())).toEqual({
        code: "RESOURCE_EXHAUSTED",
        details: expect.stringMatching(/20000\d\d.*1048576|1048576.*20000\d\d/) as string,
      });
    }

    expect(tally(await fine)).toEqual({ SCORE: 2000 });
    expect(tally(await sidecar.client.score(casesOf(10, "abc")))).toEqual({ SCORE: 10 });
  });
});
