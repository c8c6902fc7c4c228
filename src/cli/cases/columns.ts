import { UsageError } from "../exit.js";
import { nearest } from "../nearest.js";
import { JsonTextError, readArray, readObject } from "./json_text.js";
import type { Row } from "./row.js";
import type { CaseSource } from "./source.js";

/** Which columns hold what. A name is a top-level column or, where there is none so called, a dotted path into one. */
export interface ColumnNames {
  /** `undefined`: every top-level column that no other name stands in. */
  readonly input: readonly string[] | undefined;
  readonly expected: readonly string[];
  /** `undefined`: no case brings an output. */
  readonly prediction: string | undefined;
  readonly id: string | undefined;
}

/** One case's values as exact JSON text; what is missing is `undefined` or has no entry. */
export interface CaseValues {
  readonly input: readonly NamedValue[];
  readonly expected: readonly NamedValue[];
  readonly prediction: Uint8Array | undefined;
  readonly id: Uint8Array | undefined;
}

export type NamedValue = readonly [name: string, text: Uint8Array];

/** Picks the values of each case, and remembers which names no row had. */
export class ColumnPicker {
  readonly #names: ColumnNames;
  readonly #unseen: Map<string, string>;
  readonly #columns = new Set<string>();
  #sample: Row | undefined;

  constructor(names: ColumnNames) {
    this.#names = names;
    this.#unseen = new Map([
      ...(names.input ?? []).map((name) => [name, "--input-columns"] as const),
      ...names.expected.map((name) => [name, "--output-columns"] as const),
      ...(names.prediction === undefined ? [] : [[names.prediction, "--prediction-column"] as const]),
      ...(names.id === undefined ? [] : [[names.id, "--id-column"] as const]),
    ]);
  }

  pick(row: Row): CaseValues {
    this.#sample ??= row;
    for (const name of row.columns.keys()) this.#columns.add(name);
    const names = this.#names;
    return {
      input: names.input === undefined ? this.#inputsLeft(row) : this.#pickAll(row, names.input),
      expected: this.#pickAll(row, names.expected),
      prediction: names.prediction === undefined ? undefined : this.#pickOne(row, names.prediction),
      id: names.id === undefined ? undefined : this.#pickOne(row, names.id),
    };
  }

  /** Throws where a name was in no row at all; call it after the last row. */
  checkAllSeen(source: CaseSource): void {
    for (const [name, option] of this.#unseen) {
      const known = [...this.#columns];
      const near = nearest(name, [...known, ...this.#nestedNames(name)]);
      const hint = near === undefined ? "" : ` (did you mean ${JSON.stringify(near)}?)`;
      const list = known.slice(0, MOST_NAMES).join(", ") + (known.length > MOST_NAMES ? ", …" : "");
      const told = `${option} ${name}: ${source.name} has no such column${hint}; its columns are: ${list}`;
      throw new UsageError(told + formatHint(known, source));
    }
  }

  #pickAll(row: Row, names: readonly string[]): readonly NamedValue[] {
    const found: NamedValue[] = [];
    for (const name of names) {
      const text = this.#pickOne(row, name);
      if (text !== undefined) found.push([name, text]);
    }
    return found;
  }

  #pickOne(row: Row, name: string): Uint8Array | undefined {
    const found = resolve(row.columns, name);
    if (found !== undefined) this.#unseen.delete(name);
    return found;
  }

  /**
   * A path into a column takes the whole column out of the input: what stands beside a prediction or an expected value
   * in the same object (such as a label that says whether it is right) would give it away.
   */
  #inputsLeft(row: Row): readonly NamedValue[] {
    const { expected, prediction, id } = this.#names;
    const taken = new Set<string>();
    for (const name of [...expected, prediction, id]) {
      const root = name === undefined ? undefined : rootOf(row.columns, name);
      if (root !== undefined) taken.add(root);
    }
    return [...row.columns].filter(([name]) => !taken.has(name));
  }

  #nestedNames(name: string): readonly string[] {
    if (this.#sample === undefined) return [];
    const { columns } = this.#sample;
    const root = rootOf(columns, name);
    const value = root === undefined ? undefined : columns.get(root);
    const members = value === undefined ? undefined : childrenOf(value);
    return root === undefined || members === undefined ? [] : [...members.keys()].map((key) => `${root}.${key}`);
  }
}

/** A header in one piece is a header of another format. */
function formatHint([first = "", ...others]: readonly string[], { readAs }: CaseSource): string {
  if (others.length > 0) return "";
  if (/[;\t]/.test(first)) return "; separate columns with commas";
  return /^\s*[[{]/.test(first) ? `; the file is read as ${readAs}` : "";
}

/** The value that a name stands for: the member so called, else the rest of the path below the longest member it begins with. */
function resolve(members: ReadonlyMap<string, Uint8Array>, name: string): Uint8Array | undefined {
  const root = rootOf(members, name);
  const value = root === undefined ? undefined : members.get(root);
  if (root === undefined || value === undefined || root === name) return value;
  const children = childrenOf(value);
  return children === undefined ? undefined : resolve(children, name.slice(root.length + 1));
}

/** Names may hold dots themselves (`gpt-4.1.answer`), so the longest beginning that is a member wins. */
function rootOf(members: ReadonlyMap<string, unknown>, name: string): string | undefined {
  for (let end = name.length; end > 0; end = name.lastIndexOf(".", end - 1)) {
    const root = name.slice(0, end);
    if (members.has(root)) return root;
  }
  return undefined;
}

/** An object's members, or an array's elements by their place from 0; `undefined` for any other value. */
function childrenOf(value: Uint8Array): ReadonlyMap<string, Uint8Array> | undefined {
  const children = new Map<string, Uint8Array>();
  const add = (key: string, begin: number, end: number): void => void children.set(key, value.subarray(begin, end));
  try {
    if (value[0] === OPEN_OBJECT) readObject(value, 0, add);
    else if (value[0] === OPEN_ARRAY) readArray(value, 0, (begin, end) => add(String(children.size), begin, end));
    else return undefined;
  } catch (error) {
    if (error instanceof JsonTextError) return undefined;
    throw error;
  }
  return children;
}

/** Names that an error lists; more would bury what it says. */
const MOST_NAMES = 40;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;
