import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";

import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "../../src/gen/health/v1/health_pb.js";
import type { Sidecar } from "../../src/server/sidecar.js";
import { answerOf, start, TestClient } from "./clients.js";
import { FakeScorer } from "./fake_scorer.js";

const { check, list, watch } = Health.method;
const SERVICES = [
  "skynet.scoring.v1.ScoreService",
  "skynet.scoring.v1.ContractService",
  "skynet.scoring.v1.ObservationService",
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];

let scorer: FakeScorer;
let sidecar: Sidecar;
let client: TestClient;

beforeEach(async () => {
  scorer = new FakeScorer();
  sidecar = await start({ scorer });
  client = new TestClient(sidecar);
});

afterEach(async () => {
  client.close();
  await sidecar.close({ drainTimeoutMs: 0 });
});

test("every service, and the empty name, is SERVING while the scorer is ready", async () => {
  for (const [ready, status] of [
    [true, ServingStatus.SERVING],
    [false, ServingStatus.NOT_SERVING],
  ] as const) {
    scorer.setReady(ready);
    for (const service of ["", ...SERVICES]) {
      expect((await client.call(check, [{ service }])).responses).toMatchObject([{ status }]);
    }
    const [all] = (await client.call(list, [{}])).responses;
    expect(Object.keys(all?.statuses ?? {})).toEqual(["", ...SERVICES]);
    expect(Object.values(all?.statuses ?? {}).every((one) => one.status === status)).toBe(true);
  }
});

test("an unknown service is NOT_FOUND for Check", async () => {
  const { status } = await client.call(check, [{ service: "nobody.Knows" }]);
  expect(status.code).toBe(5);
  expect(status.details).toContain('there is no service "nobody.Knows"; there are: skynet.scoring.v1.ScoreService');
});

test("an unknown service is SERVICE_UNKNOWN for Watch, which stays open", async () => {
  const call = client.open(watch);
  const answer = answerOf(call);
  call.write({ service: "nobody.Knows" });
  call.end();
  const [first] = (await once(call, "data")) as [{ status: ServingStatus }];
  expect(first.status).toBe(ServingStatus.SERVICE_UNKNOWN);
  scorer.setReady(false);
  call.cancel();
  expect((await answer).responses).toHaveLength(1);
});

test("Watch tells the status at once and at each change, and lets go of a client that leaves", async () => {
  const call = client.open(watch);
  const answer = answerOf(call);
  call.write({ service: "skynet.scoring.v1.ScoreService" });
  call.end();
  for (const [ready, status] of [
    [undefined, ServingStatus.SERVING],
    [false, ServingStatus.NOT_SERVING],
    [true, ServingStatus.SERVING],
  ] as const) {
    if (ready !== undefined) scorer.setReady(ready);
    expect(await once(call, "data")).toMatchObject([{ status }]);
  }
  scorer.setReady(true);
  call.cancel();
  expect((await answer).responses).toHaveLength(3);
});
