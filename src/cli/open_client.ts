import { forgetVariable } from "../model/initial_environment.js";
import { CallFailure, type SidecarClient, connect } from "./client.js";
import { UsageError } from "./exit.js";
import { hideArguments } from "./hide_arguments.js";
import type { OptionName } from "./option_specs.js";
import { type ReadOptions, flagOf, variableOf } from "./options.js";
import { METRIC_OPTIONS, checkMetricOptions } from "./serve.js";
import { type SidecarLogOptions, sidecarLog } from "./sidecar_log.js";
import { startSidecarProcess } from "./sidecar_process.js";

/** The options that say which sidecar a command uses. */
export const SIDECAR_OPTIONS = ["connect", ...METRIC_OPTIONS] as const satisfies readonly OptionName[];

type SidecarOptions = ReadOptions<(typeof SIDECAR_OPTIONS)[number]>;

/** A sidecar to call, and how to be rid of it. */
export interface OpenedClient {
  readonly client: SidecarClient;
  /** Whether this command started it. */
  readonly isOwn: boolean;
  /** Says of a failed call how the sidecar that this command started has ended, where it has. */
  readonly explain: (error: Error) => Promise<string>;
  /** Resolves when nothing that was started is left. */
  readonly close: () => Promise<void>;
}

/** The sidecar at `--connect`, or one of this command's own that runs `--metric`. What its log says beyond what the command reports is written. */
export async function openClient(
  options: SidecarOptions,
  log: Pick<SidecarLogOptions, "reports" | "writeLine">,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const target = chooseSidecar(options);
  if (target.connect !== undefined) {
    const client = connect(target.connect);
    return {
      client,
      isOwn: false,
      explain: (error) => Promise.resolve(error.message),
      close: () => {
        client.close();
        return Promise.resolve();
      },
    };
  }
  checkMetricOptions(options);
  const { values } = options;
  const passed = options.arguments(METRIC_OPTIONS.filter((name) => name !== "logFormat"));
  const starting = startSidecarProcess(
    {
      arguments: [...passed, "--log-format=json"],
      startTimeoutMs: values.loadTimeout + START_MARGIN_MS,
      onLogLine: await sidecarLog({ ...log, level: values.logLevel, format: values.logFormat }),
    },
    signal,
  );
  // It has the key now; nothing here needs it, and run code could read it in /proc.
  forgetVariable(values.modelApiKeyEnv);
  if (values.run !== undefined) hideArguments();
  const child = await starting;
  const client = connect(child.address);
  return {
    client,
    isOwn: true,
    async explain(error) {
      const how = error instanceof CallFailure && error.status === "UNAVAILABLE" ? await child.ended() : undefined;
      return how === undefined ? error.message : `the sidecar ${how}`;
    },
    async close() {
      client.close();
      await child.stop();
    },
  };
}

/** An argument wins over a variable here too; two of the same kind contradict each other. */
function chooseSidecar({ values, origins }: SidecarOptions): { readonly connect: string | undefined } {
  const { connect: address, metric } = values;
  if (address === undefined && metric === undefined) {
    throw new UsageError(
      "--metric: which metric? Give --metric metric.py, or --connect ADDRESS for a sidecar that runs",
    );
  }
  if (address === undefined) return { connect: undefined };
  const origin = origins.get("connect");
  if (metric !== undefined && origins.get("metric") === origin) {
    const name = origin === "variable" ? variableOf : flagOf;
    throw new UsageError(
      `${name("connect")} ${address}: give either ${name("connect")} or ${name("metric")}, not both`,
    );
  }
  if (metric !== undefined && origins.get("metric") === "argument") return { connect: undefined };
  // What says how a metric is run means nothing to a sidecar that runs already.
  const useless = METRIC_OPTIONS.find((name) => origins.get(name) === "argument");
  if (useless !== undefined) {
    throw new UsageError(`${flagOf(useless)}: has no effect with --connect; give it to the sidecar's own "serve"`);
  }
  return { connect: address };
}

/** What Node and Python take to start, beside loading the metric, on a busy machine. */
const START_MARGIN_MS = 30_000;
