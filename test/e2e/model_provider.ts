import { ModelServer } from "../model_server/server.js";
import type { ScriptInput } from "../model_server/step.js";

/** A model with a price that the catalogue knows. */
export const MODEL = "gpt-4o-mini";

/** Its provider's price list: US dollars a token. */
export const PRICES = { input: 0.15e-6, cached: 0.075e-6, output: 0.6e-6 } as const;

/** A provider on this machine, and the options and variables that make it a sidecar's. */
export interface ObservedProvider {
  readonly server: ModelServer;
  readonly key: string;
  readonly options: { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
}

/** Opens one that follows a script; it is to be closed with its server. */
export async function openProvider(script: ScriptInput = {}): Promise<ObservedProvider> {
  const server = new ModelServer(script);
  await server.listen();
  const key = "sk-the-provider-s-own-key-0123456789";
  const args = ["--model-base-url", server.url, "--metric-model", MODEL];
  return { server, key, options: { args, env: { OPENAI_API_KEY: key } } };
}
