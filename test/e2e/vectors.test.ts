import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { type CaseResult } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { ContractStatus } from "../../src/gen/skynet/scoring/v1/contract_service_pb.js";
import { caseOf, failed, plain } from "./cases.js";
import { fixture, Workspace } from "./scenario.js";
import { contractVectors, hasShared } from "./shared.js";
import { Sidecar } from "./sidecar.js";
import { until } from "./until.js";

interface ReturnVector {
  readonly returns: string;
  readonly valid: boolean;
  readonly score?: number;
  readonly scores?: Readonly<Record<string, number>>;
  readonly feedback?: string;
  readonly side_info?: Readonly<Record<string, unknown>>;
}

interface SignatureVector {
  readonly source: string;
  readonly valid: boolean;
  readonly arguments?: number;
  readonly check?: string;
}

/** The contract's own vectors, each through a real worker; left out where the folder that holds them is not there. */
describe.runIf(hasShared())("return values", () => {
  const vectors = contractVectors<ReturnVector>("return_values.jsonl");
  let results: CaseResult[] = [];

  beforeAll(async () => {
    const sidecar = await Sidecar.start({ metric: fixture("returns_what_it_is_told.py") });
    try {
      results = await sidecar.client.score(vectors.map(({ returns }) => caseOf("", { returns })));
    } finally {
      await sidecar.stop();
    }
  });

  test.for(vectors.map((vector, place) => [vector.returns, vector, place] as const))("%s", ([, vector, place]) => {
    const result = results[place];
    if (result === undefined) throw new Error("it got no result");
    if (!vector.valid) {
      expect(plain(result)).toEqual(failed(place, "METRIC_RETURN_VALUE", expect.stringMatching(/.{10}/)));
      return;
    }
    if (result.outcome.case !== "score") throw new Error(`it is valid, and got ${JSON.stringify(plain(result))}`);
    const { value, feedback, scores, sideInfoJson } = result.outcome.value;
    expect(value).toBe(vector.score);
    expect(scores).toEqual(vector.scores ?? {});
    expect(sideInfoJson === "" ? {} : JSON.parse(sideInfoJson)).toEqual(vector.side_info ?? {});
    if (vector.feedback !== undefined) expect(feedback).toBe(vector.feedback);
  });
});

describe.runIf(hasShared())("signatures", () => {
  let workspace: Workspace;
  let sidecar: Sidecar;

  beforeAll(async () => {
    workspace = new Workspace();
    sidecar = await Sidecar.start({ metric: workspace.write("metric.py", FIRST), args: ["--workers", "1"] });
  });
  afterAll(async () => {
    await sidecar.stop();
    workspace.remove();
  });

  test.for(contractVectors<SignatureVector>("signatures.jsonl").map((vector) => [vector.source, vector] as const))(
    "%j",
    async ([, vector]) => {
      workspace.write("metric.py", vector.source);
      const logged = sidecar.log.length;
      sidecar.signal("SIGHUP");
      await until("the load has an outcome", () => sidecar.log.slice(logged).some((line) => "reason" in line));

      const metric = await sidecar.client.describeMetric();
      const events = await sidecar.client.checkContract([]);

      const failedChecks = events.flatMap(({ event }) =>
        event.case === "check" && event.value.status === ContractStatus.FAILED ? [event.value.name] : [],
      );
      expect({ loaded: metric.loaded, arguments: metric.arguments, failedChecks }).toEqual({
        loaded: vector.valid,
        arguments: vector.arguments ?? 0,
        failedChecks: vector.check === undefined ? (vector.valid ? [] : ["Metric file"]) : [vector.check],
      });
    },
  );
});

const FIRST = "def score(input, output): return 1.0, {'feedback': 'Fine.'}\n";
