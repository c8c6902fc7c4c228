import { Big } from "big.js";

import type { Log } from "../worker/log.js";
import { ModelAccount } from "./account.js";
import { ApiKey } from "./api_key.js";
import { Budget } from "./budget.js";
import { ModelClient } from "./client.js";
import type { ChosenModels } from "./model_choice.js";
import { readPriceFile } from "./price_file.js";
import { openCatalogue, Prices } from "./prices.js";
import { DEFAULT_BASE_URL, openProvider, type HttpProvider } from "./provider.js";

/** What was chosen by option about models. */
export interface ModelOptions extends ChosenModels {
  /** `undefined`: OpenAI's. */
  readonly baseUrl: string | undefined;
  /** The environment variable that holds the provider's key. */
  readonly keyVariable: string;
  /** A file of prices; `undefined`: the catalogue's alone. */
  readonly pricesFile: string | undefined;
  /** US dollars, decimal; `undefined`: no limit. */
  readonly maxCostUsd: string | undefined;
  /** Where the key and the proxies are read from; the key is taken out of it. */
  readonly environment: NodeJS.ProcessEnv;
}

/** What model calls go through; all parts share one provider, one account and one limit. */
export interface Models {
  readonly client: ModelClient;
  readonly provider: HttpProvider;
  readonly account: ModelAccount;

  /** Ends all connections to the provider. */
  close(): Promise<void>;
}

/** Makes what model calls need. Nothing is connected yet. Throws an error in words for the user where an option is wrong. */
export function openModels(options: ModelOptions, log: Log): Models {
  const { baseUrl = DEFAULT_BASE_URL, metricModel, reflectionModel, environment } = options;
  const key = ApiKey.take(options.keyVariable, environment);
  const isModelChosen = metricModel !== undefined || reflectionModel !== undefined;
  if (isModelChosen && !key.isSet && options.baseUrl === undefined) {
    throw new Error(
      `no key for the model: set ${key.variable}, name another variable with --model-api-key-env, ` +
        "or another provider with --model-base-url",
    );
  }
  const provider = openProvider({ baseUrl, key, environment });
  const own = options.pricesFile === undefined ? [] : readPriceFile(options.pricesFile);
  const budget = new Budget(options.maxCostUsd === undefined ? undefined : new Big(options.maxCostUsd), log);
  const account = new ModelAccount(async () => new Prices(provider.baseUrl, own, await openCatalogue()), budget);
  const client = new ModelClient({ provider, account, models: { metricModel, reflectionModel }, log });
  return { client, provider, account, close: () => provider.close() };
}
