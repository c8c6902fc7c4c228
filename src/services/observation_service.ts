import { create } from "@bufbuild/protobuf";

import {
  ObservationBeganSchema,
  ObservationErrorSchema,
  type ObserveRequest,
  type ObserveResponse,
  ObserveResponseSchema,
} from "../gen/skynet/scoring/v1/observation_service_pb.js";
import { ObservationError, type Observations } from "../scoring/observations.js";
import type { Scorer } from "../scoring/scorer.js";
import type { CallContext } from "./call_context.js";
import { messageOfObservation } from "./score_messages.js";

/** Measures the runs that an engine does itself. */
export class ObservationService {
  constructor(private readonly scorer: Scorer) {}

  /** Answers each request in its turn; when the stream ends, however it does, what it left open is dropped. */
  async *observe(
    requests: AsyncIterable<ObserveRequest>,
    context: CallContext,
  ): AsyncGenerator<ObserveResponse, void, undefined> {
    context.sendFingerprint(this.scorer.describe().fingerprint);
    const { observations } = this.scorer;
    const owner = {};
    try {
      for await (const request of requests) {
        yield create(ObserveResponseSchema, { event: answer(observations, request, owner) });
      }
    } finally {
      observations.drop(owner);
    }
  }
}

function answer(observations: Observations, { action }: ObserveRequest, owner: object): ObserveResponse["event"] {
  switch (action.case) {
    case "begin": {
      const { id, token } = observations.begin(action.value.label, owner);
      return { case: "began", value: create(ObservationBeganSchema, { observationId: id, gatewayToken: token }) };
    }
    case "end":
      try {
        return { case: "ended", value: messageOfObservation(observations.end(action.value.observationId)) };
      } catch (reason) {
        if (!(reason instanceof ObservationError)) throw reason;
        return failure(action.value.observationId, reason.message);
      }
    case undefined:
      return failure("", "the request says neither `begin` nor `end`");
  }
}

function failure(observationId: string, message: string): ObserveResponse["event"] {
  return { case: "error", value: create(ObservationErrorSchema, { observationId, message }) };
}
