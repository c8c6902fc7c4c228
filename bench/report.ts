import Table from "cli-table3";
import { meetsTarget, type Measurement } from "./benchmark.js";

/** What `bench/results/latest.json` holds. */
export interface Report {
  /** When the run ended, ISO 8601. */
  readonly endedAt: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly system: string;
    readonly node: string;
    readonly python: string;
  };
  readonly benchmarks: Readonly<Record<string, readonly Measurement[]>>;
}

/** One table a benchmark: the median, its range, the target and whether it was kept. */
export function formatReport({ machine, benchmarks }: Report): string {
  const tables = Object.entries(benchmarks).map(([name, measurements]) => {
    const table = new Table({
      head: [name, "median", "lowest", "highest", "unit", "target", ""],
      colAligns: ["left", "right", "right", "right", "left", "right", "left"],
      style: { head: [], border: [] },
    });
    table.push(...measurements.map(formatRow));
    return table.toString();
  });
  const { cpu, cores, system, node, python } = machine;
  return [`${cpu}, ${cores} cores, ${system}, Node ${node}, Python ${python}`, ...tables].join("\n\n");
}

/** The measurements that miss their target, as `benchmark: name`. */
export function missedTargets({ benchmarks }: Report): readonly string[] {
  return Object.entries(benchmarks).flatMap(([benchmark, measurements]) =>
    measurements.filter((each) => !meetsTarget(each)).map(({ name }) => `${benchmark}: ${name}`),
  );
}

function formatRow(each: Measurement): string[] {
  const { name, unit, value, samples, target } = each;
  const figures = [value, Math.min(...samples), Math.max(...samples)].map(formatFigure);
  const verdict = target === undefined ? "" : meetsTarget(each) ? "kept" : "MISSED";
  return [name, ...figures, unit, formatTarget(target), verdict];
}

function formatTarget(target: Measurement["target"]): string {
  if (target === undefined) return "";
  return "atLeast" in target ? `≥ ${formatFigure(target.atLeast)}` : `≤ ${formatFigure(target.atMost)}`;
}

function formatFigure(figure: number): string {
  return figure >= 100 ? Math.round(figure).toLocaleString("en-US") : figure.toFixed(2);
}
