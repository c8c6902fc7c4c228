import { type ModelOptions, type Models, openModels } from "../../src/model/open_models.js";
import { memoryLog } from "./memory_log.js";

/** The provider's key, which nobody but the provider may see. */
export const PROVIDER_KEY = "sk-provider-0123456789abcdef";

/** Models of a provider at that address. */
export function testModels(baseUrl: string, options: Partial<ModelOptions> = {}): Models {
  return openModels(
    {
      baseUrl,
      keyVariable: "OPENAI_API_KEY",
      environment: { OPENAI_API_KEY: PROVIDER_KEY },
      metricModel: "gpt-4o-mini",
      reflectionModel: undefined,
      pricesFile: undefined,
      maxCostUsd: undefined,
      ...options,
    },
    memoryLog(),
  );
}
