// Sets everything up and scores the example through the sidecar: `npm run demo`.
import "./node_version.mjs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { root, run } from "./command.mjs";
import { demoArguments } from "./demo_arguments.mjs";
import { findPython, setUpNode } from "./setup.mjs";

await setUpNode();
const python = findPython();
await build();
const command = join(root, "dist", "skynet-scorer.js");
process.exitCode = await run(process.execPath, [command, ...demoArguments, "--python", python]);
