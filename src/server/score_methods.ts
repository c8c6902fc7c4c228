import {
  ScoreBatchRequestSchema,
  ScoreRequestSchema,
  ScoreService as ScoreServiceDescriptor,
} from "../gen/skynet/scoring/v1/score_service_pb.js";
import { decodeScoreRequest } from "../services/score_request.js";
import { encodeScoreBatchResponse, encodeScoreResponses } from "../services/score_response.js";
import type { CaseBatch, ScoreService } from "../services/score_service.js";
import { decoding, type GrpcMethod, methodPath, onlyMessage } from "./grpc_method.js";

/** The hot methods, on the codec of their own. */
export function scoreMethods(service: ScoreService): GrpcMethod[] {
  const { score, scoreBatch } = ScoreServiceDescriptor.method;
  return [
    {
      path: methodPath(score),
      kind: "work",
      async *handle(requests, context) {
        for await (const results of service.score(batches(requests), context)) yield* encodeScoreResponses(results);
      },
    },
    {
      path: methodPath(scoreBatch),
      kind: "work",
      async *handle(requests, context) {
        const message = await onlyMessage(scoreBatch, requests);
        const batch = decoding(ScoreBatchRequestSchema, () => decodeScoreRequest(message, 0));
        yield encodeScoreBatchResponse(await service.scoreBatch(batch, context));
      },
    },
  ];
}

async function* batches(requests: AsyncIterable<Uint8Array>): AsyncGenerator<CaseBatch, void, undefined> {
  let next = 0;
  for await (const message of requests) {
    const first = next;
    const batch = decoding(ScoreRequestSchema, () => decodeScoreRequest(message, first));
    next += batch.length;
    yield batch;
  }
}
