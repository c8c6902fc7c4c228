import type { ApiKey } from "./api_key.js";
import type { ModelCallFailure } from "./call_error.js";
import { providerMessage, type RawAnswer } from "./chat_answer.js";
import { asObject, parseJson } from "./json_fields.js";
import { oneLine } from "./one_line.js";

/** An answer whose status is an error. */
export function statusFailure(answer: RawAnswer, key: ApiKey, location: string | undefined): ModelCallFailure {
  const { status, requestId } = answer;
  const said = providerMessage(answer.text);
  const isQuota = isInsufficientQuota(answer);
  const hint = isQuota ? "; check the account's plan and billing" : hintFor(status, key, location);
  const message = `the provider answered HTTP ${status}${said === undefined ? "" : `: ${said}`}${hint}`;
  return {
    kind: isQuota ? "insufficient_quota" : "provider_status",
    message,
    status,
    providerMessage: said,
    requestId,
  };
}

/** An account without credit is told with the same status as too many calls. */
export function isInsufficientQuota({ status, text }: RawAnswer): boolean {
  if (status !== 429 && status !== 403 && status !== 402) return false;
  const error = asObject(asObject(parseJson(text))?.["error"]);
  return QUOTA_CODES.has(String(error?.["code"])) || QUOTA_CODES.has(String(error?.["type"]));
}

const QUOTA_CODES: ReadonlySet<string> = new Set([
  "insufficient_quota",
  "billing_hard_limit_reached",
  "billing_not_active",
]);

function hintFor(status: number, key: ApiKey, location: string | undefined): string {
  if (status === 401 || status === 403) {
    return key.isSet
      ? `; check the key in ${key.variable}`
      : `; no key was sent, since ${key.variable} was not set when the sidecar started`;
  }
  if (status === 404 || status === 405) return "; check --model-base-url and the model's name";
  if (status >= 300 && status < 400 && location !== undefined) {
    return `; it points to ${oneLine(location, 200)}: give that place's address as --model-base-url`;
  }
  return "";
}
