import type { ToPython } from "./messages.js";
import type { LaunchOptions } from "./template.js";

/** Thread pools of numerical libraries: workers share the cores already, and a process with threads cannot be forked. */
const ONE_THREAD = {
  OMP_NUM_THREADS: "1",
  OPENBLAS_NUM_THREADS: "1",
  MKL_NUM_THREADS: "1",
  VECLIB_MAXIMUM_THREADS: "1",
  NUMEXPR_NUM_THREADS: "1",
  RAYON_NUM_THREADS: "1",
  TOKENIZERS_PARALLELISM: "false",
};

/** What a template, and a worker that loads the metric for itself, are told first. */
export function configure({ kind, file, startMethod, maxRowBytes }: LaunchOptions): ToPython {
  return {
    type: "configure",
    kind,
    file,
    start_method: startMethod,
    max_row_bytes: maxRowBytes,
    environment: ONE_THREAD,
  };
}

/** The environment of a template: the sidecar's own, without the sidecar's options, and with `changes` (`undefined` takes one out). */
export function templateEnvironment(
  changes: LaunchOptions["environment"],
  environment: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const own = Object.entries(environment).filter(([name]) => !name.startsWith("SKYNET_SCORER_"));
  const all = { ...Object.fromEntries(own), ...changes };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
