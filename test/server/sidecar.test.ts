import { once } from "node:events";
import { describe, expect, test } from "vitest";

import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "../../src/gen/health/v1/health_pb.js";
import { ServerReflection } from "../../src/gen/grpc/reflection/v1/reflection_pb.js";
import { ScoreService } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import { methodPath } from "../../src/server/grpc_method.js";
import { answerOf, jsonCase, start, TestClient } from "./clients.js";
import { FakeScorer, scored } from "./fake_scorer.js";
import { openCall, openSession } from "./raw_http2.js";

const { score } = ScoreService.method;
const UNAVAILABLE = 14;
const oneCase = { cases: [jsonCase("a", "{}", "1")] };

/** A sidecar with one call whose only case is in hand until `finish` is called. */
async function busySidecar() {
  const scorer = new FakeScorer();
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  scorer.outcome = async () => {
    await finished;
    return scored(1);
  };
  const sidecar = await start({ scorer });
  const client = new TestClient(sidecar);
  const running = client.call(score, [oneCase]);
  await scorer.until(() => scorer.seen.length === 1);
  return { scorer, finish, sidecar, client, running };
}

describe("a drain", () => {
  test("lets running calls finish, refuses new ones at once, and then ends everything", async () => {
    const { scorer, finish, sidecar, client, running } = await busySidecar();
    const closed = sidecar.close({ drainTimeoutMs: 30_000 });
    expect(scorer.closedWith).toBe(30_000);

    const refused = await client.call(score, [oneCase]);
    expect(refused.status).toMatchObject({ code: UNAVAILABLE });
    expect(refused.status.details).toContain("shutting down");
    const overHttp1 = await fetch(`http://${sidecar.addresses[0] ?? ""}${methodPath(ScoreService.method.scoreBatch)}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(overHttp1.status).toBe(503);
    expect(await overHttp1.json()).toMatchObject({ code: "unavailable" });

    finish();
    const { responses, status } = await running;
    expect(status.code).toBe(0);
    expect(responses.flatMap(({ results }) => results)).toHaveLength(1);
    await closed;
    const gone = await client.call(score, [oneCase]);
    expect(gone.status.code).toBe(UNAVAILABLE);
    client.close();
  });

  test("ends what still runs at the drain timeout, and tells its client why", async () => {
    const { scorer, sidecar, client, running } = await busySidecar();
    const closed = sidecar.close({ drainTimeoutMs: 50 });
    const { status } = await running;
    expect(status).toMatchObject({ code: UNAVAILABLE });
    expect(status.details).toContain("shutting down");
    await closed;
    expect(scorer).toMatchObject({ finalized: 1, aborted: 1 });
    client.close();
  });

  test("ends watches and reflection at once, and does not wait for connections that are merely open", async () => {
    const scorer = new FakeScorer();
    const sidecar = await start({ scorer });
    const client = new TestClient(sidecar);
    const watch = client.open(Health.method.watch);
    const watched = answerOf(watch);
    watch.write({ service: "" });
    watch.end();
    await once(watch, "data");
    const reflection = client.open(ServerReflection.method.serverReflectionInfo);
    const reflected = answerOf(reflection);
    reflection.write({ messageRequest: { case: "listServices", value: "" } });
    await once(reflection, "data");
    const idle = openSession(sidecar.addresses[0] ?? "");
    await once(idle, "connect");

    await sidecar.close({ drainTimeoutMs: 60_000 });
    const { responses, status } = await watched;
    expect(responses.map((response) => response.status)).toEqual([ServingStatus.SERVING, ServingStatus.NOT_SERVING]);
    expect(status.code).toBe(UNAVAILABLE);
    expect((await reflected).status.code).toBe(UNAVAILABLE);
    expect(scorer.listeners).toBe(0);
    client.close();
    idle.destroy();
  });

  test("is bounded even where a client never reads the end of its call", async () => {
    const scorer = new FakeScorer();
    scorer.outcome = () => scored(0.5, "x".repeat(1_000_000));
    const sidecar = await start({ scorer });
    const session = openSession(sidecar.addresses[0] ?? "");
    const closedSession = once(session, "close");
    const stream = openCall(session, methodPath(score));
    const client = new TestClient(sidecar);
    const flood = client.open(score);
    flood.on("error", () => undefined);
    for (let index = 0; index < 20; index++) flood.write(oneCase);
    await scorer.until(() => scorer.seen.length > 0);
    await sidecar.close({ drainTimeoutMs: 20 });
    await closedSession;
    expect(stream.destroyed).toBe(true);
    client.close();
  });

  test("closing twice is closing once", async () => {
    const sidecar = await start({ scorer: new FakeScorer() });
    const [first, second] = [sidecar.close({ drainTimeoutMs: 10 }), sidecar.close({ drainTimeoutMs: 10 })];
    expect(first).toBe(second);
    await first;
  });
});
