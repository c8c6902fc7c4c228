import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { isWanted, OPTIONAL_PROGRAMS } from "../optional_programs.js";
import { RecipeKitchen } from "./recipe_kitchen.js";
import { readRecipes, type Recipe } from "./recipes.js";

describe.each([
  ["README.md", { isInstalled: false }],
  ["docs/metrics.md", {}],
])("the recipes of %s, in their order", (page, options) => {
  let kitchen: RecipeKitchen;
  beforeAll(() => {
    kitchen = new RecipeKitchen(options);
  });
  afterAll(() => kitchen.close());

  for (const recipe of readRecipes(page)) {
    it.skipIf(wantsMissingProgram(recipe))(`line ${recipe.line.toString()}: ${title(recipe)}`, () =>
      kitchen.run(recipe),
    );
  }
});

it("marks every call of the command, grpcurl and curl for a test", () => {
  const commands = readRecipes("README.md").flatMap(({ kind, text }) =>
    kind === "tested" || kind === "serve" ? [text] : [],
  );
  expect(commands.length).toBeGreaterThan(7);
  for (const program of ["skynet-scorer check", "skynet-scorer score", "skynet-scorer serve", "grpcurl", "curl"]) {
    expect(commands.some((text) => text.includes(program))).toBe(true);
  }
});

function title({ kind, argument, text }: Recipe): string {
  return kind === "file" || kind === "begins" ? `${kind} ${argument}` : (text.split("\n")[0] ?? "").slice(0, 80);
}

function wantsMissingProgram({ kind, text }: Recipe): boolean {
  return kind === "tested" && OPTIONAL_PROGRAMS.some((program) => text.includes(program) && !isWanted(program));
}
