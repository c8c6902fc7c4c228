import type { ObserveResponse } from "../gen/skynet/scoring/v1/observation_service_pb.js";
import { CallError } from "./errors.js";

/** Measures runs that an engine does itself. Declared so that clients can be generated; it is not available yet. */
export class ObservationService {
  /** Always throws `not_available`. */
  observe(): AsyncIterable<ObserveResponse> {
    throw new CallError(
      "not_available",
      "observing runs is not available in this version of the sidecar; score outputs without an observation",
    );
  }
}
