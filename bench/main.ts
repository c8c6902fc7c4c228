import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, release, type } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import type { Benchmark, Measurement, Setting } from "./benchmark.js";
import { formatReport, missedTargets, type Report } from "./report.js";
import { judge } from "./judge.js";
import { run_time } from "./run_time.js";
import { start } from "./start.js";
import { throughput } from "./throughput.js";
import { transport } from "./transport.js";
import { waiting } from "./waiting.js";

/** Every benchmark, by the name that `npm run bench -- NAME` takes, in the order in which they run. */
const BENCHMARKS: Readonly<Record<string, Benchmark>> = { throughput, start, waiting, transport, judge, run_time };

/** Runs the benchmarks that the command line names, or all. Called by `scripts/bench.mjs`, which has set everything up. */
export async function main(place: Omit<Setting, "log">, args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { check: { type: "boolean", default: false } },
  });
  const setting: Setting = { ...place, log: (line) => console.error(line) };
  const report = await runAll(choose(positionals), setting);
  const file = join(place.root, "bench/results/latest.json");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
  console.log(formatReport(report));
  const missed = missedTargets(report);
  if (missed.length === 0) return;
  console.error(`Targets missed: ${missed.join("; ")}. All samples are in bench/results/latest.json.`);
  if (values.check) process.exitCode = 1;
}

function choose(names: readonly string[]): readonly (readonly [string, Benchmark])[] {
  const all = Object.entries(BENCHMARKS);
  const unknown = names.filter((name) => !Object.hasOwn(BENCHMARKS, name));
  if (unknown.length > 0) {
    const known = Object.keys(BENCHMARKS).join(", ");
    throw new Error(`there is no benchmark ${unknown.join(", ")}; there are ${known}`);
  }
  return names.length === 0 ? all : all.filter(([name]) => names.includes(name));
}

async function runAll(chosen: readonly (readonly [string, Benchmark])[], setting: Setting): Promise<Report> {
  const benchmarks: Record<string, readonly Measurement[]> = {};
  for (const [name, benchmark] of chosen) benchmarks[name] = await benchmark(setting);
  return { endedAt: new Date().toISOString(), machine: describeMachine(setting), benchmarks };
}

function describeMachine({ python }: Setting): Report["machine"] {
  const cores = cpus();
  return {
    cpu: cores[0]?.model ?? "unknown processor",
    cores: cores.length,
    system: `${type()} ${release()}`,
    node: process.versions.node,
    python: execFileSync(python, ["-c", "import platform; print(platform.python_version())"]).toString().trim(),
  };
}
