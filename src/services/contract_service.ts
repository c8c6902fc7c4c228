import { create } from "@bufbuild/protobuf";

import {
  type CheckContractRequest,
  type CheckContractResponse,
  CheckContractResponseSchema,
  ContractStatus as StatusMessage,
  ContractStep as StepMessage,
  type DescribeMetricResponse,
  DescribeMetricResponseSchema,
} from "../gen/skynet/scoring/v1/contract_service_pb.js";
import {
  checkContract,
  type ContractCheck,
  type ContractStatus,
  type ContractStep,
  SAMPLE_LIMIT,
  STEP_NAMES,
  verdictOf,
} from "../scoring/contract_check.js";
import type { Scorer } from "../scoring/scorer.js";
import type { CallContext } from "./call_context.js";
import { artifactBytes, payloadOfMessage } from "./json_value.js";
import { caseOfMessage, messageOfUsage } from "./score_messages.js";

/** Tells whether the metric keeps its contract, and what was loaded. */
export class ContractService {
  /** `version`: the sidecar's own; `maxCostUsd`: the limit on what model calls may cost, where there is one. */
  constructor(
    private readonly scorer: Scorer,
    private readonly version: string,
    private readonly maxCostUsd: number | undefined,
  ) {}

  /** Gives each check as it ends, and the verdict last. */
  async *checkContract(
    request: CheckContractRequest,
    context: CallContext,
  ): AsyncGenerator<CheckContractResponse, void, undefined> {
    context.sendFingerprint(this.scorer.describe().fingerprint);
    const checks: ContractCheck[] = [];
    const samples = request.samples.slice(0, SAMPLE_LIMIT).map(caseOfMessage);
    const given = request.samples.length;
    const artifact = artifactBytes(payloadOfMessage("artifact", request.artifact));
    for await (const check of checkContract(this.scorer, { samples, given, artifact }, context.signal)) {
      checks.push(check);
      yield create(CheckContractResponseSchema, { event: { case: "check", value: checkMessage(check) } });
    }
    const verdict = verdictOf(checks);
    yield create(CheckContractResponseSchema, {
      event: {
        case: "verdict",
        value: {
          passed: verdict.passed,
          passedCount: verdict.counts.passed,
          failedCount: verdict.counts.failed,
          skippedCount: verdict.counts.skipped,
          warningCount: verdict.warnings,
        },
      },
    });
  }

  describeMetric(context: CallContext): DescribeMetricResponse {
    const metric = this.scorer.describe();
    const usage = this.scorer.modelUsage();
    context.sendFingerprint(metric.fingerprint);
    return create(DescribeMetricResponseSchema, {
      loaded: metric.loaded,
      loadError: metric.loadError,
      fingerprint: metric.fingerprint,
      file: metric.file,
      arguments: metric.arguments,
      isAsync: metric.isAsync,
      rewardSpecJson: metric.rewardSpecJson,
      pythonVersion: metric.pythonVersion,
      startMethod: metric.startMethod,
      startMethodReason: metric.startMethodReason,
      metricTimeoutMs: this.scorer.metricTimeoutMs,
      workers: this.scorer.workerCount(),
      version: this.version,
      runFile: metric.runFile,
      runTimeoutMs: this.scorer.runTimeoutMs,
      metricUsage: messageOfUsage(usage.metric),
      gatewayUsage: messageOfUsage(usage.gateway),
      ...(this.maxCostUsd === undefined ? {} : { maxCostUsd: this.maxCostUsd }),
    });
  }
}

function checkMessage(check: ContractCheck) {
  const { step, status, message, traceback, durationMs } = check;
  return {
    step: STEPS[step],
    name: STEP_NAMES[step],
    status: STATUSES[status],
    message,
    warnings: [...check.warnings],
    traceback,
    durationMs,
  };
}

const STEPS: Readonly<Record<ContractStep, StepMessage>> = {
  metric_file: StepMessage.METRIC_FILE,
  metric_function: StepMessage.METRIC_FUNCTION,
  reward_spec: StepMessage.REWARD_SPEC,
  sample_cases: StepMessage.SAMPLE_CASES,
  run_return_value: StepMessage.RUN_RETURN_VALUE,
  metric_call: StepMessage.METRIC_CALL,
  metric_return_value: StepMessage.METRIC_RETURN_VALUE,
};

const STATUSES: Readonly<Record<ContractStatus, StatusMessage>> = {
  passed: StatusMessage.PASSED,
  failed: StatusMessage.FAILED,
  skipped: StatusMessage.SKIPPED,
};
