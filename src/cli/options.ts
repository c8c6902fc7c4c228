import type { z } from "zod";

import { UsageError } from "./exit.js";
import { nearest } from "./nearest.js";
import { OPTION_SPECS, type OptionName, type OptionSpec } from "./option_specs.js";

/** The options that a command has, with their values; `undefined` where an option without a default was not given. */
export type Options<N extends OptionName> = {
  readonly [K in N]: z.output<(typeof OPTION_SPECS)[K]["schema"]> | Absent<(typeof OPTION_SPECS)[K]>;
};

type Absent<S> = S extends { fallback: string } ? never : undefined;

/** Where an option's value came from. */
export type OptionOrigin = "argument" | "variable" | "default";

export interface ReadOptions<N extends OptionName> {
  readonly values: Options<N>;
  readonly origins: ReadonlyMap<OptionName, OptionOrigin>;
  /** An option as the user gave it, for an error: `--output r.jsonl`, or `SKYNET_SCORER_OUTPUT=r.jsonl`. */
  asGiven(name: N): string;
  /** The options that were given, as arguments for another command of this program. */
  arguments(names: readonly N[]): string[];
}

/**
 * The one reader of arguments and environment. An argument wins over a variable, and that over the default; an empty
 * variable counts as not set. Throws `UsageError` with the option, the value and what was expected.
 *
 * @param given what was given as arguments, in order.
 */
export function readOptions<const N extends OptionName>(
  names: readonly N[],
  given: ReadonlyMap<OptionName, readonly string[]>,
  environment: NodeJS.ProcessEnv,
): ReadOptions<N> {
  refuseUnknownVariables(environment);
  const origins = new Map<OptionName, OptionOrigin>();
  const texts = new Map<OptionName, readonly string[]>();
  const values = names.map((name) => {
    const spec: OptionSpec = OPTION_SPECS[name];
    const [origin, text] = find(name, spec, given, environment);
    if (text === undefined) return [name, undefined] as const;
    origins.set(name, origin);
    texts.set(name, text);
    const parsed = spec.schema.safeParse([...text]);
    if (parsed.success) return [name, parsed.data] as const;
    throw new UsageError(`${describe(name, origin, text)}: ${whyOf(parsed.error) ?? `expected ${spec.expected}`}`);
  });
  return {
    // Each value came from its own name's schema, which a map of names cannot say.
    values: Object.fromEntries(values) as Options<N>,
    origins,
    asGiven: (name) => describe(name, origins.get(name) ?? "default", texts.get(name) ?? []),
    arguments: (wanted) =>
      wanted
        .filter((name) => (origins.get(name) ?? "default") !== "default")
        .flatMap((name) => (texts.get(name) ?? []).map((text) => `${flagOf(name)}=${text}`)),
  };
}

/** The name that errors and help give an option, such as `--metric-timeout`. */
export function flagOf(name: OptionName): string {
  return OPTION_SPECS[name].flags.split(" ", 1)[0] ?? "";
}

/** The variable that gives an option, such as `SKYNET_SCORER_METRIC_TIMEOUT`. */
export function variableOf(name: OptionName): string {
  return VARIABLE_PREFIX + flagOf(name).slice(2).replaceAll("-", "_").toUpperCase();
}

/** The environment without this program's variables, for a command of this program that gets arguments instead. */
export function withoutVariables(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith(VARIABLE_PREFIX)));
}

function find(
  name: OptionName,
  spec: OptionSpec,
  given: ReadonlyMap<OptionName, readonly string[]>,
  environment: NodeJS.ProcessEnv,
): readonly [OptionOrigin, readonly string[] | undefined] {
  const argument = given.get(name);
  if (argument !== undefined) return ["argument", argument];
  const variable = environment[variableOf(name)];
  if (variable !== undefined && variable !== "") return ["variable", [variable]];
  return ["default", spec.fallback === undefined ? undefined : [spec.fallback]];
}

function describe(name: OptionName, origin: OptionOrigin, text: readonly string[]): string {
  const spec: OptionSpec = OPTION_SPECS[name];
  // Of several the last one counts, unless they add up.
  const value = spec.isRepeatable === true ? text.join(",") : (text.at(-1) ?? "");
  return origin === "variable" ? `${variableOf(name)}=${value}` : `${flagOf(name)} ${value === "" ? '""' : value}`;
}

/** The reason that the schema itself gives, where it knows more than what was expected. */
function whyOf({ issues }: z.ZodError): string | undefined {
  const [issue] = issues;
  const why: unknown = issue?.code === "custom" ? issue.params?.["why"] : undefined;
  return typeof why === "string" ? why : undefined;
}

/** A variable that is misspelt must not be silently without effect. */
function refuseUnknownVariables(environment: NodeJS.ProcessEnv): void {
  const known = (Object.keys(OPTION_SPECS) as OptionName[]).map(variableOf);
  for (const name of Object.keys(environment)) {
    if (!name.startsWith(VARIABLE_PREFIX) || known.includes(name)) continue;
    const shown = (Object.entries(OPTION_SPECS) as [OptionName, OptionSpec][]).filter(
      ([, spec]) => spec.isHidden !== true,
    );
    const words = shown.map(([one]) => variableOf(one).slice(VARIABLE_PREFIX.length));
    // By what follows the prefix, which they all share.
    const near = nearest(name.slice(VARIABLE_PREFIX.length), words);
    const hint =
      near === undefined
        ? `there are: ${VARIABLE_PREFIX} and one of ${words.sort().join(", ")}`
        : `the nearest is ${VARIABLE_PREFIX}${near}`;
    throw new UsageError(`${name}: there is no such variable; ${hint}`);
  }
}

const VARIABLE_PREFIX = "SKYNET_SCORER_";
