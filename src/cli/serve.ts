import { rmdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";

import { type Models, openModels } from "../model/open_models.js";
import { type ScorerOptions, openScorer } from "../scoring/open_scorer.js";
import type { MetricDescription } from "../scoring/scorer.js";
import { ListenError, parseListenAddress } from "../server/listen_address.js";
import { listen } from "../server/listener.js";
import { startSidecar } from "../server/sidecar.js";
import type { Log } from "../worker/log.js";
import { CommandError, EXIT, UsageError } from "./exit.js";
import { hideArguments } from "./hide_arguments.js";
import { openLog } from "./log.js";
import type { OptionName } from "./option_specs.js";
import type { ReadOptions } from "./options.js";
import { checkPython } from "./python_option.js";
import { Reloader, watchMetric } from "./reloader.js";
import { abortOn, aborted } from "./stop_signals.js";
import { checkTemporaryFolder } from "./temporary_folder.js";
import { packageVersion } from "./version.js";

/** How a metric is run: options that `score` and `check` pass on to the sidecar that they start. */
export const METRIC_OPTIONS = [
  "metric",
  "python",
  "startMethod",
  "workers",
  "maxWorkers",
  "metricTimeout",
  "loadTimeout",
  "seed",
  "run",
  "runTimeout",
  "maxRuns",
  "metricModel",
  "reflectionModel",
  "modelBaseUrl",
  "modelApiKeyEnv",
  "prices",
  "maxCost",
  "maxMessageBytes",
  "logLevel",
  "logFormat",
] as const satisfies readonly OptionName[];

export const SERVE_OPTIONS = [
  ...METRIC_OPTIONS,
  "listen",
  "drainTimeout",
  "watch",
  "stopWithStdin",
  "privateFolder",
] as const satisfies readonly OptionName[];

type ServeOptions = ReadOptions<(typeof SERVE_OPTIONS)[number]>;

/** `skynet-scorer serve`, and what is to be removed after it, however it ends. */
export async function serve(options: ServeOptions): Promise<number> {
  try {
    return await serveMetric(options);
  } catch (error) {
    throw error instanceof ListenError ? new CommandError(error.message) : error;
  } finally {
    if (options.values.privateFolder !== undefined) removeIfEmpty(options.values.privateFolder);
  }
}

/** Loads the metric, listens, says so in one line on standard output, and serves until it is told to stop. */
async function serveMetric(options: ServeOptions): Promise<number> {
  const { values } = options;
  if (values.metric === undefined)
    throw new UsageError("--metric: serve needs a metric; give it as --metric metric.py");
  checkMetricOptions(options);
  const metric = resolve(values.metric);
  if (values.run !== undefined) hideArguments();
  const log = await openLog(values.logLevel, values.logFormat);
  const stop = abortOn(["SIGTERM", "SIGINT"], EXIT.interrupted);
  const isStopped = values.stopWithStdin
    ? Promise.race([aborted(stop.signal), standardInputEnds()])
    : aborted(stop.signal);

  const stopLoading = new AbortController();
  void isStopped.then(() => {
    stopLoading.abort();
  });
  const models = openModelsOf(values, log);
  const addresses = values.listen ?? [DEFAULT_ADDRESS];
  await tryToListen(addresses);
  let runGatewayUrl = "";
  const opening = openScorer(
    { ...scorerOptions(metric, values, () => runGatewayUrl), stopLoading: stopLoading.signal },
    models.client,
    log,
  );
  // While the metric loads, which is another process's work.
  models.warmUp().catch((err: unknown) => {
    log.error({ err }, "model calls cannot be prepared, and each of them will fail");
  });
  const reloader = new Reloader(async () => (await opening).reload(), log);
  // From the start on: its default is to end the process.
  process.on("SIGHUP", () => {
    reloader.ask("SIGHUP");
  });
  const scorer = await opening;
  try {
    if (stopLoading.signal.aborted) return EXIT.ok;
    const sidecar = await startSidecar({
      scorer,
      listen: addresses,
      maxMessageBytes: values.maxMessageBytes,
      version: packageVersion(),
      models,
      servesRuns: values.run !== undefined,
      log,
    });
    runGatewayUrl = sidecar.runGatewayUrl ?? "";
    const watcher = values.watch
      ? watchMetric(metric, log, () => {
          reloader.ask("the file changed");
        })
      : undefined;
    await announce(sidecar.addresses, scorer.describe());
    // A program that started the sidecar has read that line; only a person wants to hear of it again.
    const level = values.stopWithStdin ? "debug" : "info";
    logMetric(scorer.describe(), log);
    log[level]({ addresses: sidecar.addresses }, "serving");
    await isStopped;
    log[level]({ drain_timeout_ms: values.drainTimeout }, "stopping; running cases may finish");
    watcher?.close();
    await sidecar.close({ drainTimeoutMs: values.drainTimeout });
  } finally {
    await scorer.close(0);
    await models.close();
  }
  return EXIT.ok;
}

/** What no single option shows to be wrong. Throws before anything is started. */
export function checkMetricOptions({
  values,
  origins,
  asGiven,
}: Pick<ReadOptions<(typeof METRIC_OPTIONS)[number]>, "values" | "origins" | "asGiven">): void {
  checkTemporaryFolder(process.env);
  checkPython(asGiven("python"), values.python, process.env);
  if (values.workers !== undefined && origins.get("maxWorkers") !== "default" && values.workers > values.maxWorkers) {
    throw new UsageError(`${asGiven("workers")}: ${asGiven("maxWorkers")} allows fewer; leave one of the two out`);
  }
}

/** The first line on standard output, which tells whoever started the sidecar where it is and whether it can score. */
async function announce(addresses: readonly string[], metric: MetricDescription): Promise<void> {
  const line = JSON.stringify({
    addresses,
    pid: process.pid,
    protocol: "skynet.scoring.v1",
    version: packageVersion(),
    metric_fingerprint: metric.loaded ? metric.fingerprint : "",
    metric_loaded: metric.loaded,
    ...(metric.loaded ? {} : { metric_error: metric.loadError }),
  });
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(`${line}\n`, (error) => {
      if (error) reject(new CommandError(`the first line could not be written to standard output: ${error.message}`));
      else resolve();
    });
  });
}

/** Binds each address and lets it go: one that cannot be had is told before an interpreter is started for nothing. */
async function tryToListen(addresses: readonly string[]): Promise<void> {
  for (const address of addresses) {
    const listener = await listen(parseListenAddress(address), {
      http1: (_request, response) => response.writeHead(503).end(),
      http2: (socket) => socket.destroy(),
      log: NO_LOG,
    });
    await listener.close(0);
  }
}

/** The starter's folder for the socket, which has been closed by now. Where it holds anything else, it is not this program's to remove. */
function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Its starter was faster, or will look after it.
  }
}

function logMetric(metric: MetricDescription, log: Log): void {
  const about = "metric";
  for (const { message } of metric.warnings) log.warn({ about }, message);
  for (const { message, traceback } of metric.problems) log.error({ about, traceback }, message);
  if (metric.startMethodReason !== "") log.info({}, `workers do not fork: ${metric.startMethodReason}`);
}

function openModelsOf(values: ServeOptions["values"], log: Log): Models {
  try {
    return openModels(
      {
        metricModel: values.metricModel,
        reflectionModel: values.reflectionModel,
        baseUrl: values.modelBaseUrl,
        keyVariable: values.modelApiKeyEnv,
        pricesFile: values.prices,
        maxCostUsd: values.maxCost,
        environment: process.env,
      },
      log,
    );
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function runOptions(values: ServeOptions["values"], gatewayUrl: () => string): ScorerOptions["run"] {
  if (values.run === undefined) return undefined;
  return {
    file: resolve(values.run),
    timeoutMs: values.runTimeout,
    maxRuns: values.maxRuns ?? availableParallelism(),
    environment: RUN_ENVIRONMENT,
    gatewayUrl,
  };
}

/**
 * While run code loads, a client library finds a key that no call will be let in with: each run gets a token of its own. Where it was
 * started from is nothing to it, and calls to the gateway never go through a proxy.
 */
const RUN_ENVIRONMENT = {
  OPENAI_API_KEY: "set-for-each-run",
  OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
  NO_PROXY: "127.0.0.1,localhost",
  no_proxy: "127.0.0.1,localhost",
  PWD: undefined,
  OLDPWD: undefined,
};

function scorerOptions(metric: string, values: ServeOptions["values"], gatewayUrl: () => string): ScorerOptions {
  return {
    metric,
    python: values.python,
    startMethod: values.startMethod,
    workers: values.workers,
    maxWorkers: values.maxWorkers,
    metricTimeoutMs: values.metricTimeout,
    loadTimeoutMs: values.loadTimeout,
    seed: values.seed,
    maxRowBytes: values.maxMessageBytes,
    run: runOptions(values, gatewayUrl),
  };
}

async function standardInputEnds(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.stdin
      .once("end", resolve)
      .once("close", resolve)
      .once("error", () => {
        resolve();
      });
    process.stdin.resume();
  });
}

const NO_LOG: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** Both loopbacks: 127.0.0.1, and ::1 where there is one. */
const DEFAULT_ADDRESS = "localhost:50051";
