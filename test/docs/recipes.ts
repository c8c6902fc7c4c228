import { readFileSync } from "node:fs";

/** A fenced block of a Markdown file that stands after a marker comment, `<!-- kind: argument -->`. */
export interface Recipe {
  /**
   * - `file`: the block is the content of the file that the argument names;
   * - `tested`: the block is a command that ends with 0 and prints each text of the argument (`;` between them);
   * - `serve`: the block is a command that goes on while the recipes after it run;
   * - `models`: likewise, the scripted model server's;
   * - `install`: the block is a command that installs from `/path/to/clone`;
   * - `begins`: the file that the argument names begins with the block, where `…` stands for anything.
   */
  readonly kind: "file" | "tested" | "serve" | "models" | "install" | "begins";
  readonly argument: string;
  readonly text: string;
  /** Of the marker, from 1. */
  readonly line: number;
}

/** Every marked block, in order. Throws for a marker of an unknown kind and for one without a block. */
export function readRecipes(path: string): Recipe[] {
  const markdown = readFileSync(path, "utf8");
  return [...markdown.matchAll(/^<!-- (.*?) -->$/gm)].map(({ 0: marker, 1: content = "", index }) => {
    const line = markdown.slice(0, index).split("\n").length;
    const where = `${path}:${line.toString()}`;
    const [kind = "", argument = ""] = content.split(/: (.*)/s);
    if (!isKind(kind)) throw new Error(`${where}: expected one of ${KINDS.join(", ")}, found ${marker}`);
    const block = /^\s*```\w+\n(.*?)^```$/ms.exec(markdown.slice(index + marker.length));
    if (block?.[1] === undefined || block.index !== 0) throw new Error(`${where}: no fenced block follows ${marker}`);
    return { kind, argument, text: block[1], line };
  });
}

const KINDS = ["file", "tested", "serve", "models", "install", "begins"] as const;

function isKind(text: string): text is Recipe["kind"] {
  return KINDS.some((kind) => kind === text);
}
