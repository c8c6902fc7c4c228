import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { runCommand, runProgram } from "../e2e/command.js";
import { ModelServer } from "../model_server/server.js";
import { scriptSchema, type ScriptInput } from "../model_server/step.js";

/** What `score --json` prints, as far as these tests look at it. */
interface Summary {
  readonly scored: number;
  readonly errors_by_code: Record<string, number>;
  readonly score: { readonly mean: number };
  readonly scores: Record<"accuracy" | "cost", { readonly mean: number }>;
  readonly run_cost: Spent;
  readonly judge_cost: Spent;
}
interface Spent {
  readonly usd: number;
  readonly calls: number;
  readonly cases_not_measured: number;
}

let models: ModelServer;
beforeEach(async () => {
  models = new ModelServer();
  await models.listen();
});
afterEach(() => models.close());

describe("examples/judge", () => {
  const files = ["--metric=examples/judge/metric.py", "--cases=examples/judge/answers.csv", "--id-column=id"];
  const columns = ["--input-columns=question,policy", "--prediction-column=answer"];

  async function judge(script: ScriptInput): Promise<Summary> {
    models.script(script);
    return summary([...files, ...columns, "--metric-model=gpt-4o-mini"]);
  }

  it("asks for each answer once more where the server stumbled, and once else", async () => {
    const { scored, score, judge_cost } = await judge(scriptOf("judge"));
    expect(scored).toBe(44);
    expect(score.mean).toBeCloseTo(0.7415, 4);
    expect(judge_cost).toMatchObject({ calls: 44, cases_not_measured: 0 });
    expect(models.requests).toHaveLength(46);
    expect(models.chats()[0]).toMatchObject({ temperature: 0, response_format: { type: "json_object" } });
  });

  it.each([
    ["says no JSON", "PASS, I would say."],
    ["gives points that there are not", '{"grounded": 3, "complete": 1, "friendly": 1, "advice": "Fine."}'],
    ["gives no advice", '{"grounded": 2, "complete": 1, "friendly": 1}'],
  ])("a judge that %s costs the case its score, and is no low score", async (_what, text) => {
    const { scored, errors_by_code } = await judge({ otherwise: { kind: "answer", text } });
    expect([scored, errors_by_code]).toEqual([0, { METRIC_EXCEPTION: 44 }]);
  });
});

describe("examples/reward", () => {
  const files = ["--metric=examples/reward/metric.py", "--cases=examples/reward/receipts.csv", "--id-column=id"];
  const columns = ["--input-columns=receipt", "--output-columns=merchant,date,total,category"];

  async function reward(artifact: string, script = scriptOf("reward")): Promise<Summary> {
    models.script(script);
    const run = ["--run=examples/reward/run.py", `--artifact=examples/reward/${artifact}`];
    return summary([...files, ...columns, ...run, "--metric-model=gpt-4.1-mini"]);
  }

  it("pays the shorter prompt more, which costs less, and tells the judge's cost apart", async () => {
    const short = await reward("prompt.txt");
    const long = await reward("prompt_long.txt");
    expect(short).toMatchObject({ scored: 24, run_cost: { calls: 24 }, judge_cost: { calls: 23 } });
    expect(long.run_cost.usd).toBeGreaterThan(1.5 * short.run_cost.usd);
    expect(long.judge_cost.usd).toBe(short.judge_cost.usd);
    expect([long.scores.accuracy.mean, short.scores.cost.mean]).toEqual([short.scores.accuracy.mean, 1]);
    expect(long.scores.cost.mean).toBeLessThan(0.7);
  });

  it("a model that cannot be asked is the run's error, with what the provider said", async () => {
    const otherwise = { kind: "error", status: 400, message: "no such model" } as const;
    const { errors_by_code, scored } = await reward("prompt.txt", { otherwise });
    expect([scored, errors_by_code]).toEqual([0, { RUN_EXCEPTION: 24 }]);
  });
});

it.each(["judge", "reward"])("npm run demo:%s ends with the summary and its costs", async (name) => {
  const { code, stdout, stderr } = await runProgram(process.execPath, ["scripts/demo_model.mjs", name]);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^judge cost \$0\.\d+ \(\d+ model calls, [\d,]+ tokens in, [\d,]+ out\)\nscored in /m);
  if (name === "reward") expect(stdout).toMatch(/^run time p50 .*\nrun cost \$0\.\d+ /m);
});

async function summary(args: readonly string[]): Promise<Summary> {
  const { stdout, stderr } = await runCommand(["score", ...args, `--model-base-url=${models.url}`, "--json"]);
  expect(stdout, stderr).toMatch(/^\{/);
  return JSON.parse(stdout) as Summary;
}

function scriptOf(name: string): ScriptInput {
  return scriptSchema.parse(JSON.parse(readFileSync(`examples/${name}/model_script.json`, "utf8")));
}
