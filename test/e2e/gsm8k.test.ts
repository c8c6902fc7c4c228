import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { runCommand } from "./command.js";
import { Workspace } from "./scenario.js";
import { hasShared, readJsonLines, sharedFile } from "./shared.js";

const METRIC = fileURLToPath(new URL("../fixtures/gsm8k_metric.py", import.meta.url));
const DATA = sharedFile("data", "gsm8k", "example_model_solutions.jsonl");
const MODELS = {
  "6b_finetuning": 286,
  "6b_verification": 515,
  "175b_finetuning": 458,
  "175b_verification": 742,
} as const;

type Model = keyof typeof MODELS;
type Problem = Readonly<Record<Model, { readonly is_correct: boolean }>>;

interface ResultLine {
  readonly index: number;
  readonly score: { readonly value: number };
}

/** The main job on real data: all 5,276 answers, from a file through the command, the sidecar and back into a file. */
describe.runIf(hasShared())("four models' answers to 1,319 GSM8K questions", () => {
  let workspace: Workspace;
  beforeAll(() => {
    workspace = new Workspace();
  });
  afterAll(() => workspace.remove());

  test.for(Object.entries(MODELS))(
    "%s: %i are correct, and none disagrees with its publisher",
    async ([model, correct]) => {
      const output = join(workspace.path, `${model}.jsonl`);

      const { code, stdout, stderr } = await runCommand([
        ...["score", "--metric", METRIC, "--cases", DATA, "--output", output],
        ...["--prediction-column", `${model}.solution`, "--output-columns", "ground_truth"],
      ]);

      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const problems = readJsonLines<Problem>(DATA);
      const results = readJsonLines<ResultLine>(output);
      expect(results.map(({ index }) => index)).toEqual(problems.map((_, place) => place));
      const found = results.map(({ score }) => score.value === 1);
      expect(found).toEqual(problems.map((problem) => problem[model as Model].is_correct));
      expect(found.filter(Boolean)).toHaveLength(correct);
      expect(stdout).toContain("\n1,319 of 1,319 cases\n");
    },
  );
});
