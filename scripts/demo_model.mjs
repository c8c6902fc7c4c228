// Runs an example that calls models, against the scripted model server of this machine: `npm run demo:judge`, `npm run demo:reward`.
import "./node_version.mjs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { build } from "./build.mjs";
import { root, run } from "./command.mjs";
import { findPython, setUpNode } from "./setup.mjs";

const DEMOS = {
  judge: {
    cases: "answers.csv",
    options: ["--input-columns=question,policy", "--prediction-column=answer", "--metric-model=gpt-4o-mini"],
  },
  reward: {
    cases: "receipts.csv",
    options: [
      "--input-columns=receipt",
      "--output-columns=merchant,date,total,category",
      `--run=${join("examples", "reward", "run.py")}`,
      `--artifact=${join("examples", "reward", "prompt.txt")}`,
      "--metric-model=gpt-4.1-mini",
    ],
  },
};

const name = process.argv[2] ?? "";
const demo = DEMOS[name];
if (demo === undefined) {
  console.error(`which demo? Expected one of ${Object.keys(DEMOS).join(", ")}, found ${JSON.stringify(name)}`);
  process.exit(2);
}
await setUpNode();
const python = findPython();
await build();
const example = join("examples", name);
const modelServer = await startModelServer(join(example, "model_script.json"));
process.exitCode = await run(process.execPath, [
  join(root, "dist", "skynet-scorer.js"),
  "score",
  ...["--python", python],
  ...["--metric", join(example, "metric.py")],
  ...["--cases", join(example, demo.cases)],
  ...["--id-column", "id"],
  ...demo.options,
  ...["--model-base-url", modelServer.url],
]);
await modelServer.stop();

/** A model server that ends when this process does, however that ends. */
async function startModelServer(script) {
  const args = [join("test", "model_server", "run.mjs"), "--script", script, "--stop-with-stdin"];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended]);
  if (typeof line !== "string") {
    console.error(`the model server ended with exit code ${line} before it served`);
    process.exit(1);
  }
  return {
    url: JSON.parse(line).url,
    stop: async () => {
      child.stdin.end();
      await ended;
    },
  };
}
