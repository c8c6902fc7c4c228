import { asObject, asText, parseJson } from "./json_fields.js";

/** Parameters that a call can do without. */
export type OptionalParameter = "temperature" | "max_tokens" | "response_format";

/**
 * Remembers which parameters a model does not support, as reasoning models do with `temperature`. Such a parameter is left out from then on;
 * it is not replaced by another one that may mean something else.
 */
export class RefusedParameters {
  readonly #byModel = new Map<string, Set<OptionalParameter>>();

  of(model: string): ReadonlySet<OptionalParameter> {
    return this.#byModel.get(model) ?? NONE;
  }

  /** Returns whether that is news. */
  add(model: string, parameter: OptionalParameter): boolean {
    const known = this.#byModel.get(model) ?? new Set();
    if (known.has(parameter)) return false;
    this.#byModel.set(model, known.add(parameter));
    return true;
  }
}

const NONE: ReadonlySet<OptionalParameter> = new Set();

/**
 * The parameter of those `sent` that the provider says the model does not support. One whose value alone is wrong (a temperature of 3, a
 * broken schema) is the caller's to mend and is not dropped.
 */
export function refusedParameter(
  status: number,
  body: string,
  sent: readonly OptionalParameter[],
): OptionalParameter | undefined {
  if (status !== 400 && status !== 422) return undefined;
  const answer = asObject(parseJson(body));
  const error = asObject(answer?.["error"]) ?? answer;
  const message = asText(error?.["message"]) ?? asText(error?.["detail"]) ?? asText(answer?.["error"]) ?? body;
  if (!UNSUPPORTED_CODES.has(String(error?.["code"])) && !UNSUPPORTED_WORDS.test(message)) return undefined;
  const param = asText(error?.["param"])?.split(/[.[]/)[0];
  return param === undefined ? firstNamed(message, sent) : sent.find((name) => name === param);
}

const UNSUPPORTED_CODES: ReadonlySet<string> = new Set([
  "unsupported_parameter",
  "unsupported_value",
  "unknown_parameter",
]);
const UNSUPPORTED_WORDS =
  /\b(unsupported|not supported|(does|do|is|are) ?n['’]?o?t support(ed)?|unrecogni[sz]ed|unknown (parameter|argument|field|name)|unexpected (keyword|parameter|argument|field)|extra (inputs|fields)|not (permitted|allowed)|deprecated)\b/i;

/** "Use 'max_completion_tokens' instead" may name a second one: the first counts. */
function firstNamed(message: string, sent: readonly OptionalParameter[]): OptionalParameter | undefined {
  const places = sent
    .map((name) => ({ name, place: message.search(new RegExp(`(?<![A-Za-z_])${name}(?![A-Za-z_])`)) }))
    .filter(({ place }) => place >= 0)
    .sort((a, b) => a.place - b.place);
  return places[0]?.name;
}
