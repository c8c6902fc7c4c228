// Sets everything up and scores the example through the sidecar: `npm run demo`.
import "./node_version.mjs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { root, run } from "./command.mjs";
import { findPython, setUpNode } from "./setup.mjs";

await setUpNode();
const python = findPython();
await build();
const example = join("examples", "support-tickets");
process.exitCode = await run(process.execPath, [
  join(root, "dist", "skynet-scorer.js"),
  "score",
  ...["--python", python],
  ...["--metric", join(example, "metric.py")],
  ...["--cases", join(example, "tickets.csv")],
  ...["--id-column", "id"],
  ...["--input-columns", "subject,message"],
  ...["--output-columns", "category,priority"],
  ...["--prediction-column", "prediction"],
]);
