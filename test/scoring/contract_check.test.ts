import { Big } from "big.js";
import { describe, expect, test } from "vitest";

import type { Cost } from "../../src/model/cost.js";
import { Meter } from "../../src/model/meter.js";
import type { Case } from "../../src/scoring/case.js";
import {
  checkContract,
  type ContractCheck,
  type ContractSamples,
  verdictOf,
} from "../../src/scoring/contract_check.js";
import type { MetricDescription } from "../../src/scoring/scorer.js";
import type { CaseError, CaseErrorCode, Observed, Outcome, Score } from "../../src/scoring/result.js";
import { FakeScorer, METRIC, scored } from "../server/fake_scorer.js";

describe("a metric that keeps its contract", () => {
  test("passes every step, in their order, without a warning", async () => {
    const checks = await run({});
    expect(checks.map(({ step, status, warnings }) => [step, status, warnings])).toEqual([
      ["metric_file", "passed", []],
      ["metric_function", "passed", []],
      ["reward_spec", "passed", []],
      ["sample_cases", "passed", []],
      ["metric_call", "passed", []],
      ["metric_return_value", "passed", []],
    ]);
    expect(checks.map(({ message }) => message)).toEqual([
      "metric.py loaded in 12 ms under Python 3.12.1",
      "score(input, output, expected=None), called with 3 arguments",
      "there is no REWARD_SPEC",
      "2 can be given to the metric",
      "score returned on every sample, called twice on each",
      "a score and side info with feedback; the scores are 1, 1",
    ]);
    expect(verdictOf(checks)).toEqual({ passed: true, counts: { passed: 6, failed: 0, skipped: 0 }, warnings: 0 });
  });

  test("each sample is scored twice, under the same id and index", async () => {
    const scorer = new FakeScorer();
    await run({ scorer });
    expect(scorer.seen.map(({ id, index }) => [id, index])).toEqual([
      ["a", 0],
      ["b", 1],
      ["a", 0],
      ["b", 1],
    ]);
  });
});

describe("a metric that did not load", () => {
  const broken: MetricDescription = {
    ...METRIC,
    loaded: false,
    loadError: "SyntaxError: invalid syntax (metric.py, line 3)",
  };

  test("fails at Metric file with its traceback; what depends on it is skipped and says why", async () => {
    const problem = {
      step: "metric_file" as const,
      message: broken.loadError,
      traceback: "Traceback (most recent call last): …",
    };
    const checks = await run({ metric: { ...broken, problems: [problem] } });
    expect(checks[0]).toMatchObject({ status: "failed", message: problem.message, traceback: problem.traceback });
    expect(checks.map(({ status }) => status)).toEqual([
      "failed",
      "skipped",
      "skipped",
      "passed",
      "skipped",
      "skipped",
    ]);
    expect(checks.slice(-2).map(({ message }) => message)).toEqual(["Metric file failed", "Metric file failed"]);
    expect(verdictOf(checks)).toMatchObject({ passed: false, counts: { failed: 1, skipped: 4 } });
  });

  test("fails at Metric file where nothing more is known", async () => {
    const checks = await run({ metric: { ...broken, loadError: "python3 was not found" } });
    expect(checks[0]).toMatchObject({ step: "metric_file", status: "failed", message: "python3 was not found" });
  });

  test.each(["metric_function", "reward_spec"] as const)(
    "fails at %s alone where that is its problem",
    async (step) => {
      const checks = await run({ metric: { ...broken, problems: [{ step, message: "what and why", traceback: "" }] } });
      expect(checks.filter(({ status }) => status === "failed")).toMatchObject([{ step, message: "what and why" }]);
      expect(checks.filter(({ status }) => status === "skipped").map((check) => check.step)).toEqual([
        "metric_call",
        "metric_return_value",
      ]);
    },
  );

  test("what the loader warns of stands at its step", async () => {
    const warnings = [{ step: "metric_function" as const, message: "the third parameter is called strict" }];
    const checks = await run({ metric: { ...METRIC, warnings } });
    expect(checks.flatMap((check) => check.warnings.map((text) => [check.step, text]))).toEqual([
      ["metric_function", "the third parameter is called strict"],
    ]);
  });
});

describe("samples", () => {
  test("without samples the steps that need them are skipped, and nothing fails", async () => {
    const checks = await run({ samples: [] });
    expect(checks.slice(3).map(({ step, status, message }) => [step, status, message])).toEqual([
      ["sample_cases", "skipped", "no sample cases were given; give up to 3"],
      ["metric_call", "skipped", "Sample cases was skipped"],
      ["metric_return_value", "skipped", "Sample cases was skipped"],
    ]);
    expect(verdictOf(checks).passed).toBe(true);
  });

  test.each<[string, Partial<Case>, RegExp]>([
    ["no input", { input: undefined }, /^sample 1 \("a"\): it has no input; give `input`/],
    ["an input that is not an object", { input: bytes("[1]") }, /its input is an array; expected a JSON object/],
    ["expected values that are not an object", { expected: bytes("[1]") }, /its expected is an array; expected a JSON/],
    ["an input that is null", { input: bytes("null") }, /its input is null; expected a JSON object/],
    ["no output", { output: undefined }, /it has no output; give `output`/],
    ["an output that is not JSON", { output: bytes("{") }, /its output is not JSON/],
    [
      "an expected value that is not UTF-8",
      { expected: Uint8Array.from([0x22, 0xff, 0x22]) },
      /its expected is not JSON/,
    ],
    ["a payload that could not be carried over", { fault: "`input.value` holds NaN" }, /`input\.value` holds NaN/],
  ])("%s fails at Sample cases", async (_what, change, message) => {
    const checks = await run({ samples: [sample(0, "a", change)] });
    const check = checks.find(({ step }) => step === "sample_cases");
    expect(check).toMatchObject({ status: "failed", message: expect.stringMatching(message) as string });
    expect(checks.at(-1)).toMatchObject({ status: "skipped", message: "Sample cases failed" });
  });

  test("NaN and the infinities are numbers, as Python's json reads them", async () => {
    const change = { input: bytes('{"x": [NaN, -Infinity, Infinity], "text": "\\"NaN"}') };
    const checks = await run({ samples: [sample(0, "a", change)] });
    expect(verdictOf(checks).passed).toBe(true);
  });

  test("warns where samples come without an expected value, JSON null included", async () => {
    const all = await run({
      samples: [sample(0, "a", { expected: undefined }), sample(1, "", { expected: bytes(" null ") })],
    });
    expect(warningsOf(all)).toEqual(["every sample comes without an expected value; the metric gets None for it"]);
    const one = await run({ samples: [sample(0, "a"), sample(1, "", { expected: undefined })] });
    expect(warningsOf(one)).toEqual(["sample 2 comes without an expected value; the metric gets None for it"]);
  });

  test("says how many of those given are used", async () => {
    const checks = await run({ given: 60 });
    expect(checks[3]?.message).toBe("the first 2 of 60 are used");
  });
});

describe("run code", () => {
  const artifact = bytes('"prompt"');
  const withRun: MetricDescription = { ...METRIC, runFile: "run.py" };
  const bare = (index: number, id: string) => sample(index, id, { output: undefined });
  const failing: CaseError = {
    kind: "error",
    code: "RUN_EXCEPTION",
    message: "KeyError: 'prompt' (run.py, line 3)",
    traceback: "Traceback of the run",
  };
  const measured = (runMs: number, cost: Cost): Observed => {
    const meter = new Meter();
    meter.record({ usage: undefined, cost });
    return { id: "obs-1", runMs, usage: meter.usage() };
  };

  test("each sample without output is run once, and scored twice with the same output and measurements", async () => {
    const scorer = new FakeScorer();
    const observation = measured(12.4, { usd: new Big("0.01") });
    scorer.run = () => ({ output: bytes('"from the run"'), observation });
    const checks = await run({ scorer, metric: withRun, artifact, samples: [bare(0, "a"), sample(1, "b")] });
    expect(checks[4]).toMatchObject({
      step: "run_return_value",
      status: "passed",
      message: "run returned an output for every sample without one, in 12 ms; its 1 model call cost $0.01",
      durationMs: 12.4,
    });
    expect(verdictOf(checks)).toMatchObject({ passed: true, counts: { passed: 7 } });
    expect(scorer.seen.map(({ id, output, observed }) => [id, text(output), observed])).toEqual([
      ["a", undefined, undefined],
      ["b", '"x"', undefined],
      ["a", '"from the run"', observation],
      ["b", '"x"', undefined],
    ]);
  });

  test("that fails alike on several samples is told once for all of them", async () => {
    const scorer = new FakeScorer();
    scorer.run = ({ id }) => (id === "c" ? { ...failing, message: "another" } : failing);
    const checks = await run({
      scorer,
      metric: withRun,
      artifact,
      samples: [bare(0, "a"), bare(1, "b"), bare(2, "c")],
    });
    expect(checks[4]?.message).toBe(`sample 1 ("a") and sample 2 ("b"): ${failing.message}; sample 3 ("c"): another`);
  });

  test("that fails is told with its message and traceback; the other samples are scored", async () => {
    const scorer = new FakeScorer();
    scorer.run = ({ id }) => (id === "a" ? failing : { output: bytes("1") });
    const checks = await run({ scorer, metric: withRun, artifact, samples: [bare(0, "a"), bare(1, "b")] });
    expect(checks.slice(4)).toMatchObject([
      {
        step: "run_return_value",
        status: "failed",
        message: `sample 1 ("a"): ${failing.message}`,
        traceback: "Traceback of the run",
      },
      { step: "metric_call", status: "passed" },
      { step: "metric_return_value", status: "passed" },
    ]);
    expect(scorer.seen.map(({ id }) => id)).toEqual(["a", "b", "b"]);
  });

  test("that fails on every sample leaves nothing to score", async () => {
    const scorer = new FakeScorer();
    scorer.run = () => failing;
    const checks = await run({ scorer, metric: withRun, artifact, samples: [bare(0, "a")] });
    expect(checks.slice(4).map(({ status, message }) => [status, message])).toEqual([
      ["failed", `sample 1 ("a"): ${failing.message}`],
      ["skipped", "Run return value failed on every sample"],
      ["skipped", "Run return value failed on every sample"],
    ]);
  });

  test("a metric that fails on what was run is no fault of the run", async () => {
    const scorer = new FakeScorer();
    scorer.outcome = () => ({ kind: "error", code: "METRIC_EXCEPTION", message: "ValueError", traceback: "" });
    const checks = await run({ scorer, metric: withRun, artifact, samples: [bare(0, "a")] });
    expect(checks.slice(4).map(({ status }) => status)).toEqual(["passed", "failed", "skipped"]);
  });

  test("needs no run where every sample brings its output", async () => {
    const checks = await run({ metric: withRun });
    expect(checks[4]).toMatchObject({ status: "skipped", message: "every sample brings its own output" });
    expect(verdictOf(checks).passed).toBe(true);
  });

  test("that did not load fails at its own step, with what the loader said", async () => {
    const problem = { step: "run_file" as const, message: "SyntaxError (run.py, line 1)", traceback: "Traceback" };
    const metric = { ...withRun, loaded: false, loadError: problem.message, problems: [problem] };
    const checks = await run({ metric, artifact, samples: [bare(0, "a")] });
    expect(checks.map(({ step, status }) => [step, status])).toEqual([
      ["metric_file", "passed"],
      ["metric_function", "passed"],
      ["reward_spec", "passed"],
      ["sample_cases", "passed"],
      ["run_return_value", "failed"],
      ["metric_call", "skipped"],
      ["metric_return_value", "skipped"],
    ]);
    expect(checks[4]).toMatchObject({ message: problem.message, traceback: "Traceback" });
  });

  test("is not tried where something before it failed", async () => {
    const checks = await run({ metric: withRun, artifact, samples: [sample(0, "a", { input: undefined })] });
    expect(checks[4]).toMatchObject({ status: "skipped", message: "Sample cases failed" });
  });

  test.each<[string, MetricDescription, Uint8Array | undefined, RegExp]>([
    ["no artifact", withRun, undefined, /it has no output, and no artifact to run came with it/],
    ["an artifact that is not JSON", withRun, bytes("{"), /its artifact is not JSON/],
    ["no run code", METRIC, artifact, /there is no run code; give `output`, or start the sidecar with --run run\.py/],
  ])("a sample without output and %s fails at Sample cases", async (_what, metric, given, message) => {
    const checks = await run({ metric, artifact: given, samples: [bare(0, "a")] });
    const step = checks.find((check) => check.step === "sample_cases");
    expect(step).toMatchObject({ status: "failed", message: expect.stringMatching(message) as string });
  });

  test("an observation of a sample is used once, for both calls; one that is not known fails at Sample cases", async () => {
    const scorer = new FakeScorer();
    const { id } = scorer.observations.begin("", {});
    scorer.observations.end(id);
    const checks = await run({ scorer, samples: [sample(0, "a", { observationId: id })] });
    expect(verdictOf(checks).passed).toBe(true);
    expect(scorer.seen.map(({ observationId, observed }) => [observationId, observed?.id])).toEqual([
      ["", id],
      ["", id],
    ]);
    const again = await run({ scorer, samples: [sample(0, "a", { observationId: id })] });
    expect(again[3]?.message).toMatch(/belongs to another case already/);
  });

  describe("with a REWARD_SPEC", () => {
    const rewardWeights = { accuracy: 0.7, speed: 0.2, cost: 0.1 };
    const metric = { ...withRun, rewardSpecJson: "{}", rewardWeights };
    const parts: [string, number][] = [
      ["accuracy", 1],
      ["speed", 0.5],
      ["cost", 0],
    ];
    const rewarded = (scores: readonly [string, number][]): Outcome => ({
      ...(scored(0.8, "Right, and a little slow.") as Score),
      scores,
    });

    test("says what each part scored and what could not be measured", async () => {
      const scorer = new FakeScorer();
      scorer.outcome = () => rewarded(parts);
      scorer.run = () => ({
        output: bytes("1"),
        observation: measured(4000, { usd: undefined, reason: "no price is known" }),
      });
      const checks = await run({ scorer, metric, artifact, samples: [bare(0, "a"), sample(1, "b")] });
      const unseen = "(time and cost were not measured: the sample brings its output, without an observation)";
      expect(checks.at(-1)?.message).toBe(
        [
          "a score and side info with feedback",
          'sample 1 ("a") scored 0.8: accuracy 1, speed 0.5 (4000 ms), cost 0 (not measured: no price is known)',
          `sample 2 ("b") scored 0.8: accuracy 1, speed 0.5, cost 0 ${unseen}`,
        ].join("\n"),
      );
    });

    test("warns where what the metric returns does not come from reward()", async () => {
      const scorer = new FakeScorer();
      scorer.outcome = () => rewarded([]);
      const checks = await run({ scorer, metric, samples: [sample(0, "a")] });
      expect(checks.at(-1)?.warnings).toEqual([
        'REWARD_SPEC is defined, and the scores of sample 1 ("a") lack its parts; return reward(REWARD_SPEC, accuracy, feedback)',
      ]);
    });
  });
});

describe("a metric that fails on samples", () => {
  test.each<CaseErrorCode>(["METRIC_EXCEPTION", "METRIC_TIMEOUT", "METRIC_CRASHED", "INVALID_CASE"])(
    "%s fails at Metric call; such a sample is not tried again",
    async (code) => {
      const scorer = new FakeScorer();
      scorer.outcome = () => ({
        kind: "error",
        code,
        message: "KeyError: 'label' (metric.py, line 2)",
        traceback: "Traceback",
      });
      const checks = await run({ scorer, samples: [sample(0, "a")] });
      const [call, value] = checks.slice(-2);
      expect(call).toMatchObject({ step: "metric_call", status: "failed", traceback: "Traceback" });
      expect(call?.message).toMatch(/^sample 1 \("a"\): KeyError: 'label' \(metric\.py, line 2\)/);
      expect(value).toMatchObject({ status: "skipped", message: "Metric call failed on every sample" });
      expect(scorer.seen).toHaveLength(1);
    },
  );

  test("a return value of another shape fails at Metric return value, not at Metric call", async () => {
    const scorer = new FakeScorer();
    const message = 'the side info has no "feedback" string; it has the keys "reason", "scores"';
    scorer.outcome = ({ index }) =>
      index === 0 ? { kind: "error", code: "METRIC_RETURN_VALUE", message, traceback: "" } : scored(1);
    const checks = await run({ scorer });
    expect(checks.slice(-2)).toMatchObject([
      { step: "metric_call", status: "passed" },
      { step: "metric_return_value", status: "failed", message: `sample 1 ("a"): ${message}` },
    ]);
  });

  test.each<[string, Partial<Case>, string, boolean]>([
    ["without expected values", { expected: undefined }, "TypeError: 'NoneType' object is not subscriptable", true],
    ["with null for them", { expected: Buffer.from(" null") }, "KeyError: 'label'", true],
    ["that has them", {}, "KeyError: 'label'", false],
    ["where something else is wrong", { expected: undefined }, "ValueError: no", false],
  ])("an exception on a sample %s says what to do", async (_, change, message, isTold) => {
    const scorer = new FakeScorer();
    scorer.outcome = () => ({ kind: "error", code: "METRIC_EXCEPTION", message, traceback: "" });
    const checks = await run({ scorer, samples: [{ ...sample(0, "a"), ...change }] });
    const found = checks.at(-2)?.message ?? "";
    expect(found).toMatch(/; return a low score where an output is bad, and raise only where a case cannot be judged$/);
    expect(
      found.includes("no sample has expected values, so that `expected` is None; give them (with --output-columns"),
    ).toBe(isTold);
  });

  test("failing on the second call alone is a failure too", async () => {
    const scorer = new FakeScorer();
    scorer.outcome = (_item, call) =>
      call === 1 ? scored(1) : { kind: "error", code: "METRIC_EXCEPTION", message: "StopIteration", traceback: "" };
    const checks = await run({ scorer, samples: [sample(0, "a")] });
    expect(checks.at(-2)?.message).toMatch(/^the second call on sample 1 \("a"\): StopIteration/);
    expect(checks.at(-1)?.status).toBe("passed");
  });
});

describe("warnings about what came back", () => {
  test.each<[string, (item: Case, call: number) => Outcome, RegExp[]]>([
    [
      "no feedback for a score under 1",
      ({ index }) => scored(index, ""),
      [/sample 1 \("a"\) scored 0 with no feedback; say/],
    ],
    [
      "feedback of 14 characters",
      ({ index }) => scored(index, "x".repeat(14)),
      [/scored 0 with only "xxxxxxxxxxxxxx"/],
    ],
    ["feedback of 15 characters", ({ index }) => scored(index, "x".repeat(15)), []],
    ["short feedback for a score of 1", () => scored(1, ""), []],
    [
      "the same feedback for all that score under 1",
      () => scored(0.5, "The label is wrong."),
      [/all 2 samples that scored under 1 got the same feedback/],
    ],
    ["different feedback", ({ id }) => scored(0.5, `The label of ${id} is wrong.`), []],
    [
      "another score on the second call",
      (_item, call) => scored(call === 1 ? 1 : 0.25),
      [/"a"\) scored 1 and, called again, 0.25/, /"b"/],
    ],
    ["a score over 1", () => scored(1.5), [/"a"\) scored 1.5, outside 0..1/, /"b"/]],
    [
      "a score under 0",
      ({ id, index }) => scored(index - 1, `The label of ${id} is not the right one.`),
      [/"a"\) scored -1, outside 0..1/],
    ],
  ])("%s", async (_what, outcome, warnings) => {
    const scorer = new FakeScorer();
    scorer.outcome = outcome;
    const found = warningsOf(await run({ scorer }));
    expect(found).toEqual(warnings.map((pattern) => expect.stringMatching(pattern) as string));
  });

  test("a REWARD_SPEC may score anything, and says what giving up would earn", async () => {
    const scorer = new FakeScorer();
    const scores = ["accuracy", "speed", "cost"].map((part) => [part, 1.5] as const);
    scorer.outcome = () => ({ ...(scored(1.5) as Score), scores });
    const rewardWeights = { accuracy: 0.7, speed: 0.2, cost: 0.1 };
    const checks = await run({ scorer, metric: { ...METRIC, rewardSpecJson: "{}", rewardWeights } });
    expect(checks[2]).toMatchObject({ step: "reward_spec", status: "passed" });
    expect(checks[2]?.message).toBe("REWARD_SPEC weighs accuracy 0.7, speed 0.2 and cost 0.1");
    expect(warningsOf(checks)).toEqual([
      expect.stringContaining("an instant, free and wrong output would earn 0.3 (speed 0.2 + cost 0.1)") as string,
    ]);
  });

  test("a REWARD_SPEC that rewards accuracy alone leaves nothing to earn by giving up", async () => {
    const rewardWeights = { accuracy: 1, speed: 0, cost: 0 };
    const scorer = new FakeScorer();
    const scores = ["accuracy", "speed", "cost"].map((part) => [part, 1] as const);
    scorer.outcome = () => ({ ...(scored(1) as Score), scores });
    expect(warningsOf(await run({ scorer, metric: { ...METRIC, rewardSpecJson: "{}", rewardWeights } }))).toEqual([]);
  });

  test("a sample that took over half the timeout", async () => {
    const scorer = new FakeScorer();
    scorer.metricMs = 30_001;
    const checks = await run({ scorer, samples: [sample(0, "a")] });
    expect(checks.find(({ step }) => step === "metric_call")?.warnings).toEqual([
      'sample 1 ("a") took 30.001 s, over half of the metric\'s timeout of 60 s; a slower case will be ended',
    ]);
    scorer.metricMs = 30_000;
    expect(warningsOf(await run({ scorer, samples: [sample(0, "a")] }))).toEqual([]);
  });
});

test("the check ends where its call is cancelled", async () => {
  const scorer = new FakeScorer();
  scorer.outcome = () => new Promise<never>(() => undefined);
  const controller = new AbortController();
  const checks = run({ scorer, signal: controller.signal });
  await scorer.until(() => scorer.seen.length === 1);
  controller.abort();
  await expect(checks).rejects.toMatchObject({ code: "cancelled" });
});

interface Setup extends Partial<ContractSamples> {
  readonly scorer?: FakeScorer;
  readonly metric?: MetricDescription;
  readonly signal?: AbortSignal;
}

async function run(setup: Setup): Promise<ContractCheck[]> {
  const scorer = setup.scorer ?? new FakeScorer();
  if (setup.metric !== undefined) scorer.metric = setup.metric;
  const samples = setup.samples ?? [sample(0, "a"), sample(1, "b")];
  const given = { samples, given: setup.given ?? samples.length, artifact: setup.artifact };
  const checks: ContractCheck[] = [];
  for await (const check of checkContract(scorer, given, setup.signal ?? new AbortController().signal))
    checks.push(check);
  return checks;
}

function warningsOf(checks: readonly ContractCheck[]): string[] {
  return checks.flatMap(({ warnings }) => warnings);
}

function sample(index: number, id: string, change: Partial<Case> = {}): Case {
  const payloads = { input: bytes('{"q": 1}'), output: bytes('"x"'), expected: bytes('{"label": "x"}') };
  return { id, index, ...payloads, observationId: "", ...change };
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function text(payload: Uint8Array | undefined): string | undefined {
  return payload === undefined ? undefined : new TextDecoder().decode(payload);
}
