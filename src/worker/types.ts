import type { Log } from "./log.js";

/** The values of a case as a chunk carries them, each followed by 0x1E: a range of what may hold those of other cases too. */
export interface ChunkValues {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

/** One case of a chunk; payloads are JSON text, checked to hold no 0x1E byte. */
export interface ChunkCase {
  readonly input: Uint8Array;
  readonly output: Uint8Array;
  /** `undefined`: the metric gets `None`. */
  readonly expected: Uint8Array | undefined;
  /** Seeds the metric's random generators before this case. All cases of a chunk have one, or none has. */
  readonly seed: bigint | undefined;
  /** What was measured of the run that produced `output`, as JSON (docs/worker-protocol.md); `undefined`: nothing. */
  readonly observation: Uint8Array | undefined;
  /** The three payloads once more, where they lie together already. */
  values?: ChunkValues;
}

/** What came of one case of a chunk. */
export interface Row {
  /** The case's position in the chunk, from 0. */
  readonly position: number;
  readonly kind: "score" | "invalid_case" | "metric_exception" | "metric_return_value" | "ran";
  /** The score; 0 for an error. */
  readonly value: number;
  readonly metricMs: number;
  /** Feedback, the error's message, or the run code's output as JSON. */
  readonly text: Uint8Array;
  /** Named scores as JSON `[["name", number], …]`, or the traceback; may be empty. */
  readonly detail: Uint8Array;
  /** The other side info, a JSON object; may be empty. */
  readonly sideInfo: Uint8Array;
}

/** What a chunk has used since it began, in milliseconds. */
export interface ChunkUsage {
  /** Wall time in the metric. */
  readonly metricMs: number;
  /** CPU time of the worker's process and of the children that it waited for. */
  readonly cpuMs: number;
  /** How long its main thread waited for a core. */
  readonly coreWaitMs: number;
}

/** What a worker has used so far, seen from outside, in milliseconds. */
export interface RunningUsage {
  /** CPU time of its process and of what that started. */
  readonly cpuMs: number;
  /** How long its main thread has waited for a core; a wait counts from its end. */
  readonly coreWaitMs: number;
  /** Whether any of its threads, or of what it started, runs or waits for a core at this moment. */
  readonly isRunnable: boolean;
}

/** What a worker is doing at this moment, seen from outside. */
export interface InHand {
  /** Position of the case in hand in its chunk; `undefined` between cases. */
  readonly position: number | undefined;
  /** When that case began, on this process's `performance.now()` clock. */
  readonly beganAt: number;
}

/** Why a worker was told to end. */
export type EndReason = "timeout" | "cancelled" | "surplus" | "closed";

/** How a worker's process ended on its own. */
export interface Death {
  readonly pid: number;
  readonly exitCode: number | undefined;
  /** A name such as "SIGKILL". */
  readonly signal: string | undefined;
  /** What it said that no worker says, where it was killed for that; absent otherwise. */
  readonly breach?: string;
  /** Position in its chunk of the case that it had in hand; `undefined` where it had none. */
  readonly position: number | undefined;
}

/** One interpreter that scores, one chunk at a time. */
export interface Worker {
  readonly number: number;
  readonly pid: number;
  readonly state: "starting" | "idle" | "busy" | "ending" | "ended";

  /** Whether it is busy and no chunk waits behind the one in hand. */
  readonly canQueue: boolean;

  /**
   * Gives it a chunk and returns the chunk's number. Only while it is idle or can queue; the chunk has at least one case. Never throws for a
   * worker that is dying: its death is told instead. `isWatched`: its `cpuTimes` will be asked, which takes a look at its beginning.
   */
  run(cases: readonly ChunkCase[], isWatched?: boolean): number;

  /**
   * Asks it to finish its chunk after the case in hand (docs/worker-protocol.md, "recall"): `rows` and `idle` follow as ever, with fewer
   * rows than the chunk has cases. Does nothing where it is not busy.
   */
  recall(): void;

  /** Sets environment variables in a run worker, before its chunk. */
  setEnvironment(variables: Readonly<Record<string, string>>): void;

  /** Answers a `modelCall`. Does nothing where the worker is no longer there to hear it. */
  answer(call: number, answer: ModelReply): void;

  /** Reads its outbox: delivers finished rows that it has not sent yet through `WorkerListener.rows`, then tells what it has in hand. */
  look(): InHand;

  /** What it has used since its chunk of one case began, where it is watched; `undefined` for a larger chunk, and where the system does not tell. */
  cpuTimes(): RunningUsage | undefined;

  /** Memory that only this worker uses, in bytes; `undefined` where the system does not tell. */
  privateBytes(): number | undefined;

  /** Ends it: SIGINT, and SIGKILL to its group after a grace. From now on the listener hears nothing of it. */
  end(reason: EndReason): void;
}

/** What the pool tells its owner. Never called inside a call that the owner makes, except `rows` inside `look`. */
export interface WorkerListener {
  /** The worker can take a chunk, for the first time or again. */
  idle(worker: Worker): void;

  /** Results of the chunk in hand, each position once. `usage` comes with what the worker sent itself; `finished`: the chunk is done (`idle` follows). */
  rows(worker: Worker, rows: readonly Row[], usage: ChunkUsage | undefined): void;

  /** The metric asks a model; answered by `Worker.answer`, in any order. Never told of a run worker. */
  modelCall(worker: Worker, call: ModelCall): void;

  /** The worker died. All rows that could be saved have been delivered. A replacement is on its way already. */
  died(worker: Worker, death: Death): void;

  /** No worker is alive and several starts in a row have failed; tried again, backed off. */
  unavailable(reason: string): void;
}

/** A metric's question to a model. */
export interface ModelCall {
  /** The worker's number for it. */
  readonly call: number;
  /** The chunk, and the position in it of the case in hand; `undefined` between cases (a thread that outlived its case). */
  readonly chunk: number;
  readonly position: number | undefined;
  /** As in OpenAI's chat completions. */
  readonly messages: readonly unknown[];
  /** What the metric set; `undefined` what it did not. */
  readonly model: string | undefined;
  readonly temperature: number | undefined;
  readonly maxTokens: number | undefined;
  readonly responseFormat: unknown;
  readonly timeoutMs: number | undefined;
}

/** What a model call used, as the worker tells the metric; in snake case, since it goes to Python as it stands. */
export interface ReplyUsage {
  readonly prompt_tokens: number;
  readonly cached_prompt_tokens: number;
  readonly completion_tokens: number;
  readonly reasoning_tokens: number;
}

/** The answer to a `ModelCall`. */
export type ModelReply =
  | {
      readonly answer: {
        readonly text: string;
        readonly model: string;
        readonly usage: ReplyUsage | null;
        /** US dollars, decimal; null where it is not known. */
        readonly cost_usd: string | null;
        readonly cost_not_known_reason: string;
      };
    }
  | {
      readonly error: {
        /** What happened and what to do, in one line; never a key. */
        readonly message: string;
        readonly status: number | null;
        readonly provider_message: string;
        readonly finish_reason: string;
        readonly request_id: string;
        /** What the model said before it was cut. */
        readonly text: string;
        readonly usage: ReplyUsage | null;
        readonly cost_usd: string | null;
      };
    };

/** Keeps workers of one loaded metric alive. */
export interface Pool {
  /** Workers that are starting, idle or busy. */
  readonly workers: ReadonlySet<Worker>;

  /** Wants that many workers alive; starts more where there are fewer, never ends any. */
  want(count: number): void;

  /** Ends everything. Resolves when no process is left and the folder is gone. */
  close(): Promise<void>;
}

/** What `openPool` needs to know. */
export interface PoolOptions {
  /** What the file is: a metric, whose workers live on, or run code, whose workers make one run each. */
  readonly kind: "metric" | "run";
  /** `metric.py`, or `run.py`. */
  readonly file: string;
  /** Environment variables of the template and its workers: set; `undefined`: taken out. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The interpreter; `undefined`: the active virtual environment's, else `python3`. */
  readonly python: string | undefined;
  readonly startMethod: "auto" | "fork" | "spawn";
  readonly loadTimeoutMs: number;
  /** A result that needs more bytes is an error of its case. */
  readonly maxRowBytes: number;
  /** Aborted: a load that is under way is given up, which is a problem of the step `metric_file`. */
  readonly stopLoading?: AbortSignal;
  /** What the metric, or something that it started, printed. */
  readonly printed: (line: Printed) => void;
}

/** Something that was printed. */
export interface Printed {
  /** 0 for the template. */
  readonly worker: number;
  /** `"output"`: written to descriptor 1 or 2 directly. */
  readonly stream: "stdout" | "stderr" | "output";
  readonly text: string;
  /** The chunk that the worker had; `undefined` where it had none. */
  readonly chunk: number | undefined;
  /** The position in the chunk; `undefined` where it is not known. */
  readonly position: number | undefined;
}

/** The metric as loaded: `loaded.metric` of the protocol, and how its workers start. */
export interface LoadedMetric {
  readonly fingerprint: string;
  readonly file: string;
  /** Empty: it can score. */
  readonly problems: readonly MetricProblem[];
  readonly warnings: readonly { readonly step: MetricStep; readonly message: string }[];
  readonly arguments: number;
  readonly signature: string;
  readonly isAsync: boolean;
  readonly rewardSpecJson: string;
  readonly rewardWeights: { readonly accuracy: number; readonly speed: number; readonly cost: number } | undefined;
  readonly loadMs: number;
  readonly pythonVersion: string;
  readonly startMethod: "fork" | "spawn";
  /** Why workers do not fork, where that was not the user's choice; empty otherwise. */
  readonly startMethodReason: string;
}

/** The part of a contract that loading can tell about; the last is about run code. */
export type MetricStep = "metric_file" | "metric_function" | "reward_spec" | "run_file";

export interface MetricProblem {
  readonly step: MetricStep;
  readonly message: string;
  readonly traceback: string;
}

/** The outcome of loading a metric. A metric with problems has no pool; nothing of it is left running. */
export interface OpenedPool {
  readonly metric: LoadedMetric;
  readonly pool: Pool | undefined;
}

/**
 * Loads a metric and makes its workers ready to start: none runs before `Pool.want`. The interpreter that cannot be found, is too old or
 * dies while loading, and a load that exceeds its timeout, are problems of the step `metric_file`.
 */
export type OpenPool = (options: PoolOptions, listener: WorkerListener, log: Log) => Promise<OpenedPool>;
