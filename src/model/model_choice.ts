import { ModelCallError } from "./call_error.js";

/** The models that were chosen by option; `undefined`: not given. */
export interface ChosenModels {
  readonly metricModel: string | undefined;
  readonly reflectionModel: string | undefined;
}

/** Which model a metric's call goes to: the one that the call names, else the metric model, else the reflection model. */
export function chooseModel(named: string | undefined, { metricModel, reflectionModel }: ChosenModels): string {
  const model = named ?? metricModel ?? reflectionModel;
  if (model !== undefined) return model;
  throw new ModelCallError({
    kind: "no_model",
    message:
      "no model to call: start the sidecar with --metric-model NAME, or with --reflection-model NAME to use that one",
  });
}
