import { SingleBar } from "cli-progress";
import { performance } from "node:perf_hooks";

import { cutToWidth } from "../terminal_text.js";
import { shortCost } from "./spending.js";
import type { Tally } from "./tally.js";

/** Tells how far a run is. */
export interface Progress {
  update(tally: Tally): void;
  /** Writes a line of something else without disturbing the bar. */
  writeLine(line: string): void;
  stop(): void;
}

/** What progress is written to: standard error, or a test's own. */
export interface ProgressStream extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** A bar on a terminal; a line now and then where there is none. */
export function startProgress(total: number, stream: ProgressStream): Progress {
  return stream.isTTY === true ? new BarProgress(total, stream) : new LineProgress(total, stream);
}

class BarProgress implements Progress {
  readonly #bar: SingleBar;
  readonly #rate = new Rate();
  #tally: Tally | undefined;

  constructor(
    private readonly total: number,
    private readonly stream: ProgressStream,
  ) {
    this.#bar = new SingleBar({
      format: () => progressLine(this.#tally, this.total, this.#rate, this.stream.columns ?? FALLBACK_WIDTH),
      stream,
      hideCursor: true,
      // The line fits; what is written in between must wrap, not be cut.
      linewrap: true,
      fps: 10,
      // What was written in between has moved the bar, and a resized terminal has cut it.
      forceRedraw: true,
      // Stopping is in one place, ours.
      gracefulExit: false,
      clearOnComplete: true,
    });
    this.#bar.start(total, 0);
  }

  update(tally: Tally): void {
    this.#tally = tally;
    this.#rate.add(tally.results);
    this.#bar.update(tally.results);
  }

  writeLine(line: string): void {
    // Back to the line's beginning and clear it: the bar is drawn again below what is written.
    this.stream.write(`\r\u001B[K${line}\n`);
    this.#bar.render();
  }

  stop(): void {
    // The bar goes back to the cursor that it saved at its start and clears that line. Lines were written since: save anew.
    this.stream.write("\r\u001B7");
    this.#bar.stop();
  }
}

class LineProgress implements Progress {
  readonly #rate = new Rate();
  #lastAt = performance.now();

  constructor(
    private readonly total: number,
    private readonly stream: ProgressStream,
  ) {}

  update(tally: Tally): void {
    this.#rate.add(tally.results);
    if (performance.now() - this.#lastAt < LINE_EVERY_MS) return;
    this.#lastAt = performance.now();
    this.stream.write(`${progressText(tally, this.total, this.#rate)}\n`);
  }

  writeLine(line: string): void {
    this.stream.write(`${line}\n`);
  }

  stop(): void {
    // The summary follows.
  }
}

/** Cases a second over the last seconds. */
class Rate {
  readonly #points: { at: number; results: number }[] = [{ at: performance.now(), results: 0 }];

  add(results: number): void {
    const at = performance.now();
    const last = this.#points.at(-1);
    if (last !== undefined && this.#points.length > 1 && at - last.at < POINT_EVERY_MS) last.results = results;
    else this.#points.push({ at, results });
    while (this.#points.length > 2 && at - (this.#points[1]?.at ?? at) > RATE_OVER_MS) this.#points.shift();
  }

  perSecond(): number {
    const first = this.#points[0];
    const last = this.#points.at(-1);
    if (first === undefined || last === undefined || last.at <= first.at) return 0;
    return ((last.results - first.results) * 1000) / (last.at - first.at);
  }
}

/** One line that fits the terminal: the words first, fewer where they must be, and the bar in the room that is left. */
export function progressLine(
  tally: Tally | undefined,
  total: number,
  rate: { perSecond(): number },
  width: number,
): string {
  const long = progressText(tally, total, rate);
  const words = width - long.length - 2 < LEAST_BAR_WIDTH ? progressText(tally, total, rate, SHORT) : long;
  // The last column stays free: some terminals wrap when it is written.
  const room = Math.min(MOST_BAR_WIDTH, width - words.length - 2);
  if (room < LEAST_BAR_WIDTH) return cutToWidth(words, width - 1);
  const full = Math.round((room * (tally?.results ?? 0)) / total);
  return `${"█".repeat(full)}${"░".repeat(room - full)} ${words}`;
}

interface Words {
  readonly rate: string;
  /** Between a run's time and its cost. */
  readonly runCost: string;
}

const LONG: Words = { rate: " cases/s", runCost: "  runs " };
const SHORT: Words = { rate: "/s", runCost: " " };

function progressText(
  tally: Tally | undefined,
  total: number,
  rate: { perSecond(): number },
  words: Words = LONG,
): string {
  const done = tally?.results ?? 0;
  const mean = tally?.score.mean;
  const errors = tally?.errorCount ?? 0;
  return [
    `${done.toLocaleString("en")}/${total.toLocaleString("en")}`,
    `${Math.round(rate.perSecond()).toLocaleString("en")}${words.rate}`,
    `mean ${mean === undefined ? "–" : mean.toFixed(4)}`,
    `${errors.toLocaleString("en")} ${errors === 1 ? "error" : "errors"}`,
    ...(tally === undefined ? [] : measured(tally, words)),
  ].join("  ");
}

/** Of runs and judges, where there are any: the median run, and what was spent. */
function measured({ runMs, runCost, metricCost }: Tally, words: Words): string[] {
  const [median] = runMs.at(0.5);
  const time = median === undefined ? "run" : `run ${median < 10 ? median.toFixed(1) : median.toFixed(0)} ms`;
  return [
    ...(runCost.cases === 0 ? [] : [`${time}${runCost.isAny ? `${words.runCost}${shortCost(runCost)}` : ""}`]),
    ...(metricCost.cases === 0 ? [] : [`judge ${shortCost(metricCost)}`]),
  ];
}

const LINE_EVERY_MS = 5000;
const RATE_OVER_MS = 3000;
const POINT_EVERY_MS = 50;
const MOST_BAR_WIDTH = 40;
const LEAST_BAR_WIDTH = 8;
const FALLBACK_WIDTH = 80;
