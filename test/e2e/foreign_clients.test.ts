import { describe, expect } from "vitest";

import { runProgram } from "./command.js";
import { fixture, test } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";
import { isWanted, programPath } from "../optional_programs.js";
import { until } from "./until.js";

const CASE_A = { id: "a", input: { value: { q: 1 } }, output: { value: "x" }, expected: { value: { label: "x" } } };
const CASE_B = { id: "b", input: { json: "{}" }, output: { json: '"y"' }, expected: { json: '{"label": "x"}' } };
const SCORE_A = { id: "a", index: 0, score: { value: 1, feedback: "Correct.", scores: {}, side_info_json: "" } };
const SCORE_B = {
  id: "b",
  index: 1,
  score: { value: 0, feedback: "Expected 'x', got 'y'.", scores: {}, side_info_json: "" },
};
const TIMING = { queued_ms: expect.any(Number) as number, metric_ms: expect.any(Number) as number };

const STEPS = [
  "Metric file",
  "Metric function",
  "Reward spec",
  "Sample cases",
  "Metric call",
  "Metric return value",
] as const;

/** What other people's programs, unmodified, make of the sidecar. */
describe.runIf(isWanted("grpcurl"))("grpcurl", () => {
  test("lists the services", async ({ start }) => {
    const { address } = await start("exact_match.py");

    const { code, stdout, stderr } = await grpcurl(address, ["list"]);

    expect({ code, stderr, services: stdout.trim().split("\n") }).toEqual({
      code: 0,
      stderr: "",
      services: [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "skynet.scoring.v1.ContractService",
        "skynet.scoring.v1.ObservationService",
        "skynet.scoring.v1.ScoreService",
      ],
    });
  });

  test("describes services and messages, with imports, maps and optionals", async ({ start }) => {
    const { address } = await start("exact_match.py");

    expect(await grpcurl(address, ["describe", "skynet.scoring.v1.ScoreService"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        "rpc Score ( stream .skynet.scoring.v1.ScoreRequest ) returns ( stream .skynet.scoring.v1.ScoreResponse );",
      ) as string,
    });
    for (const [message, field] of [
      ["JsonValue", ".google.protobuf.Value value = 2;"],
      ["Score", "map<string, double> scores = 3;"],
      ["Timing", "optional double run_ms = 3;"],
      ["CaseResult", ".skynet.scoring.v1.CaseError error = 4;"],
    ] as const) {
      expect(await grpcurl(address, ["describe", `skynet.scoring.v1.${message}`])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(field) as string,
      });
    }
  });

  test("scores two batches from standard input on one stream", async ({ start }) => {
    const { address } = await start("exact_match.py");

    const outcome = await grpcurl(
      address,
      ["skynet.scoring.v1.ScoreService/Score"],
      [{ cases: [CASE_A] }, { cases: [CASE_B] }],
    );

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    const results = messages(outcome.stdout).flatMap((response) => (response as { results: unknown[] }).results);
    expect(results).toHaveLength(2);
    expect(results).toEqual(
      expect.arrayContaining(
        [
          { ...SCORE_A, timing: TIMING },
          { ...SCORE_B, timing: TIMING },
        ].map(likeGo),
      ),
    );
  });

  test("checks the contract, a message a step and the verdict last", async ({ start }) => {
    const { address } = await start("exact_match.py");

    const outcome = await grpcurl(
      address,
      ["skynet.scoring.v1.ContractService/CheckContract"],
      [{ samples: [CASE_A] }],
    );

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(messages(outcome.stdout)).toEqual([
      ...STEPS.map((name) => ({
        check: expect.objectContaining({ name, status: "CONTRACT_STATUS_PASSED" }) as unknown,
      })),
      { verdict: { passed: true, passedCount: 6, failedCount: 0, skippedCount: 0, warningCount: 0 } },
    ]);
  });

  test("reaches a unix socket", async ({ start }) => {
    const { address } = await start({ metric: fixture("exact_match.py"), listen: "unix socket" });
    expect(address).toMatch(/^unix:\//);

    const outcome = await grpcurl(address, ["skynet.scoring.v1.ScoreService/ScoreBatch"], [{ cases: [CASE_A] }]);

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(messages(outcome.stdout)).toEqual([{ results: [likeGo({ ...SCORE_A, timing: TIMING })] }]);
  });

  test("begins an observation", async ({ start }) => {
    const { address } = await start("exact_match.py");

    const outcome = await grpcurl(
      address,
      ["skynet.scoring.v1.ObservationService/Observe"],
      [{ begin: { label: "x" } }],
    );

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(messages(outcome.stdout)).toEqual([
      {
        began: {
          observationId: expect.stringMatching(/./) as string,
          gatewayToken: expect.stringMatching(/./) as string,
        },
      },
    ]);
  });
});

describe.runIf(isWanted("grpc-health-probe"))("grpc_health_probe", () => {
  test("finds the sidecar serving, as a whole and by service, and not serving where the metric does not load", async ({
    start,
    workspace,
  }) => {
    const healthy = await start("exact_match.py");
    const broken = await start({ metric: workspace.write("metric.py", "raise SystemExit(3)\n") });
    const probe = programPath("grpc-health-probe");
    await until("the first worker stands", async () => (await healthy.client.health()) === "SERVING");

    for (const service of ["", "skynet.scoring.v1.ScoreService"]) {
      const outcome = await runProgram(probe, [`-addr=${healthy.address}`, `-service=${service}`]);
      expect(outcome).toMatchObject({ code: 0, stderr: expect.stringContaining("SERVING") as string });
    }
    const refusal = await runProgram(probe, [`-addr=${broken.address}`]);
    expect(refusal).toMatchObject({ code: 4, stderr: expect.stringContaining("NOT_SERVING") as string });
  });
});

describe("curl", () => {
  test("scores a batch as Connect JSON", async ({ start }) => {
    const sidecar = await start("exact_match.py");

    const { code, stdout } = await curl(sidecar, "skynet.scoring.v1.ScoreService/ScoreBatch", {
      cases: [CASE_A, CASE_B],
    });

    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      results: [
        { ...SCORE_A, timing: TIMING },
        { ...SCORE_B, timing: TIMING },
      ],
    });
  });

  test("describes the metric", async ({ start }) => {
    const sidecar = await start("exact_match.py");

    const { stdout } = await curl(sidecar, "skynet.scoring.v1.ContractService/DescribeMetric", {});

    expect(JSON.parse(stdout)).toMatchObject({ loaded: true, file: "exact_match.py", arguments: 3 });
  });

  test("is told what is wrong with what it sends", async ({ start }) => {
    const sidecar = await start("exact_match.py");

    const { stdout } = await curl(sidecar, "skynet.scoring.v1.ScoreService/ScoreBatch", { cazes: [] });

    expect(JSON.parse(stdout)).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("cazes") as string,
    });
  });
});

describe("fetch", () => {
  test("checks the contract as a Connect stream", async ({ start }) => {
    const { address } = await start("exact_match.py");

    const response = await fetch(`http://${address}/skynet.scoring.v1.ContractService/CheckContract`, {
      method: "POST",
      headers: { "content-type": "application/connect+json", "connect-protocol-version": "1" },
      body: envelope({ samples: [CASE_A] }),
    });

    expect({ status: response.status, type: response.headers.get("content-type") }).toEqual({
      status: 200,
      type: "application/connect+json",
    });
    expect(envelopes(Buffer.from(await response.arrayBuffer()))).toEqual([
      ...STEPS.map((name) => [
        0,
        { check: expect.objectContaining({ name, status: "CONTRACT_STATUS_PASSED" }) as unknown },
      ]),
      [0, { verdict: expect.objectContaining({ passed: true }) as unknown }],
      [2, {}],
    ]);
  });
});

function grpcurl(address: string, args: readonly string[], requests: readonly unknown[] = []) {
  const socket = address.startsWith("unix:") ? ["-unix", address.slice("unix:".length)] : [address];
  const data = requests.length === 0 ? [] : ["-emit-defaults", "-d", "@"];
  const input = requests.map((request) => JSON.stringify(request)).join("\n");
  return runProgram(programPath("grpcurl"), ["-plaintext", ...data, ...socket, ...args], { input });
}

function curl({ address }: Sidecar, method: string, request: unknown) {
  const header = "content-type: application/json";
  return runProgram("curl", ["-sS", "-H", header, "-d", JSON.stringify(request), `http://${address}/${method}`]);
}

/** JSON objects, one after the other, as grpcurl prints them. */
function messages(stdout: string): unknown[] {
  const text = stdout.trim();
  return text === "" ? [] : (JSON.parse(`[${text.replace(/\n}\n{/g, "\n},\n{")}]`) as unknown[]);
}

/** The same result in the names, and with the empty fields, that Go's protobuf JSON has. */
function likeGo({ score, timing, ...rest }: typeof SCORE_A & { readonly timing: typeof TIMING }): unknown {
  return {
    ...rest,
    score: { value: score.value, feedback: score.feedback, scores: {}, sideInfoJson: "" },
    timing: { queuedMs: timing.queued_ms, metricMs: timing.metric_ms },
    observation: null,
    metricUsage: null,
    output: null,
  };
}

function envelope(message: unknown): Buffer<ArrayBuffer> {
  const body = Buffer.from(JSON.stringify(message));
  const whole = Buffer.alloc(5 + body.length);
  whole.writeUInt32BE(body.length, 1);
  body.copy(whole, 5);
  return whole;
}

/** Flags and message of each envelope; the flag 2 marks the last one. */
function envelopes(bytes: Buffer): [flags: number, message: unknown][] {
  const found: [number, unknown][] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    found.push([bytes.readUInt8(at), JSON.parse(bytes.subarray(at + 5, end).toString("utf8"))]);
    at = end;
  }
  return found;
}
