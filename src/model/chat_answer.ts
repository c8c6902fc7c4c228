import type { ModelCallFailure } from "./call_error.js";
import { asArray, asObject, asText, parseJson, type JsonObject } from "./json_fields.js";
import { oneLine } from "./one_line.js";
import { readUsage, type UsageReport } from "./token_usage.js";

/** An answer of the provider as it came, read to its end. */
export interface RawAnswer {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly contentType: string | undefined;
  /** The key is already taken out of it. */
  readonly text: string;
}

/** What a chat completion says. */
export type ChatOutcome = Usable | Unusable;

interface Usable {
  readonly failure?: undefined;
  readonly text: string;
  readonly finishReason: string | undefined;
  readonly charge: Charge;
}

interface Unusable {
  readonly failure: ModelCallFailure;
  /** `undefined`: the provider bills nothing for this. */
  readonly charge: Charge | undefined;
}

/** What the provider bills by. */
export interface Charge {
  readonly usage: UsageReport;
  /** The model that answered, as it calls itself. */
  readonly answeredBy: string | undefined;
  /** `undefined`: the plain one. Others have prices of their own. */
  readonly serviceTier: string | undefined;
}

/** Reads an answer with a status of success; an error may hide in it all the same. */
export function readChatAnswer(answer: RawAnswer): ChatOutcome {
  const body = asObject(parseJson(answer.text));
  if (body === undefined) return { failure: notJson(answer), charge: NOTHING_TOLD };
  const charge = readCharge(body);
  const fail = (failure: Omit<ModelCallFailure, "status" | "requestId">): Unusable => ({
    failure: { ...failure, status: answer.status, requestId: answer.requestId },
    charge,
  });
  const error = body["error"];
  if (error !== undefined && error !== null) return hiddenError(error, answer, charge);
  const choice = asObject(asArray(body["choices"])?.[0]);
  if (choice === undefined) {
    const what = asArray(body["choices"]) === undefined ? "is not a chat completion" : "has no choices";
    return fail({ kind: "invalid_answer", message: `the provider's answer ${what}: ${excerpt(answer.text)}` });
  }
  const finishReason = asText(choice["finish_reason"]);
  const message = asObject(choice["message"]) ?? {};
  const text = contentText(message["content"]);
  const refusal = asText(message["refusal"]);
  if (refusal !== undefined) {
    const providerMessage = oneLine(refusal);
    return fail({ kind: "refusal", message: `the model refused: ${providerMessage}`, providerMessage, finishReason });
  }
  if (finishReason === "length") {
    return fail({ kind: "length", message: cutByLength(text, charge), finishReason, text });
  }
  if (finishReason === "content_filter") {
    const cut = "the provider's content filter cut the answer (finish_reason content_filter): change the prompt";
    return fail({ kind: "content_filter", message: cut, finishReason, text });
  }
  if (text === "") {
    const why = finishReason === undefined ? "" : ` (finish_reason ${oneLine(finishReason, 40)})`;
    return fail({ kind: "empty_answer", message: `the model's answer is empty${why}`, finishReason });
  }
  return { text, finishReason, charge };
}

/** What a chat completion, or the events of a streamed one joined, bills by. */
export function readCharge(body: JsonObject): Charge {
  return {
    usage: readUsage(body["usage"]),
    answeredBy: asText(body["model"]),
    serviceTier: asText(body["service_tier"]),
  };
}

const NOTHING_TOLD: Charge = { usage: readUsage(undefined), answeredBy: undefined, serviceTier: undefined };

/** What the provider says in the body of an error: OpenAI's format, its relatives', or none. */
export function providerMessage(text: string): string | undefined {
  const body = asObject(parseJson(text));
  const error = body?.["error"];
  const message =
    asText(asObject(error)?.["message"]) ?? asText(error) ?? asText(body?.["message"]) ?? asText(body?.["detail"]);
  if (message !== undefined) return oneLine(message);
  const rest = oneLine(text.trimStart().startsWith("<") ? pageTitle(text) : text, 200);
  return rest === "" ? undefined : rest;
}

/** An error's own code where it stands for an HTTP status, as some providers send it under status 200. */
function hiddenError(error: unknown, answer: RawAnswer, charge: Charge): Unusable {
  const code = asObject(error)?.["code"];
  const isStatus = typeof code === "number" && code >= 400 && code <= 599;
  const said = providerMessage(answer.text);
  return {
    failure: {
      kind: isStatus ? "provider_status" : "invalid_answer",
      message: `an error under HTTP ${answer.status}${isStatus ? `, code ${code}` : ""}: ${said ?? "without a message"}`,
      status: isStatus ? code : answer.status,
      providerMessage: said,
      requestId: answer.requestId,
    },
    charge: isStatus && charge.usage.tokens === undefined ? undefined : charge,
  };
}

function notJson({ status, requestId, contentType, text }: RawAnswer): ModelCallFailure {
  const isPage = text.trimStart().startsWith("<") || (contentType ?? "").includes("html");
  const came =
    text.trim() === "" ? "an empty body" : isPage ? `an HTML page (${excerpt(pageTitle(text))})` : excerpt(text);
  const message = `the provider's answer is not JSON but ${came}; does --model-base-url name an API, such as one ending in /v1?`;
  return { kind: "invalid_answer", message, status, requestId };
}

function cutByLength(text: string, { usage }: Charge): string {
  const tokens = usage.tokens;
  const all = tokens === undefined ? "" : ` of ${tokens.completionTokens} tokens`;
  const thinking =
    tokens !== undefined && text === "" && tokens.reasoningTokens > 0
      ? `, ${tokens.reasoningTokens} of them reasoning`
      : "";
  return `the answer was cut at its limit${all}${thinking} (finish_reason length): raise max_tokens, or ask for less`;
}

/** Some providers answer with a list of parts. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return (asArray(content) ?? []).map((part) => asText(asObject(part)?.["text"]) ?? "").join("");
}

function pageTitle(page: string): string {
  return /<title[^>]*>([^<]*)/i.exec(page)?.[1] ?? page.replace(/<[^>]*>/g, " ");
}

function excerpt(text: string): string {
  return JSON.stringify(oneLine(text, 200));
}
