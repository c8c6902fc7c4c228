import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { isWanted, OPTIONAL_PROGRAMS } from "../optional_programs.js";
import { RecipeKitchen } from "./recipe_kitchen.js";
import { readRecipes, type Recipe } from "./recipes.js";

const PAGES = {
  "docs/models.md": undefined,
  "docs/runs.md": undefined,
  "examples/judge/README.md": "examples/judge",
  "examples/reward/README.md": "examples/reward",
};

for (const [page, contents] of Object.entries(PAGES)) {
  describe(`the recipes of ${page}, in their order`, () => {
    let kitchen: RecipeKitchen;
    beforeAll(() => {
      kitchen = new RecipeKitchen(contents === undefined ? {} : { contents });
    });
    afterAll(() => kitchen.close());

    for (const recipe of readRecipes(page)) {
      it.skipIf(wantsMissingProgram(recipe))(`line ${recipe.line}: ${recipe.kind} ${recipe.text.slice(0, 60)}`, () =>
        kitchen.run(recipe),
      );
    }
  });

  it(`${page} marks what its readers are to run for a test`, () => {
    const commands = readRecipes(page).filter(({ kind }) => kind === "tested");
    expect(commands.length).toBeGreaterThan(1);
  });
}

function wantsMissingProgram({ kind, text }: Recipe): boolean {
  return kind === "tested" && OPTIONAL_PROGRAMS.some((program) => text.includes(program) && !isWanted(program));
}
