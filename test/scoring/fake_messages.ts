import type { LoadedMetric, ModelCall } from "../../src/worker/types.js";

/** What a pool tells of a metric that has loaded. */
export const LOADED_METRIC: LoadedMetric = {
  fingerprint: "f1",
  file: "metric.py",
  problems: [],
  warnings: [],
  arguments: 3,
  signature: "(input, output, expected=None)",
  isAsync: false,
  rewardSpecJson: "",
  rewardWeights: undefined,
  loadMs: 1,
  pythonVersion: "3.12.1",
  startMethod: "fork",
  startMethodReason: "",
};

/** A question to a model that sets nothing, from the first case of the first chunk. */
export const MODEL_CALL: ModelCall = {
  call: 1,
  chunk: 1,
  position: 0,
  messages: [],
  model: undefined,
  temperature: undefined,
  maxTokens: undefined,
  responseFormat: undefined,
  timeoutMs: undefined,
};
