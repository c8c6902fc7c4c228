import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { RecipeKitchen } from "../docs/recipe_kitchen.js";
import { readRecipes } from "../docs/recipes.js";

const EXAMPLE = "examples/support-tickets";

describe("every command of the example's README", () => {
  let kitchen: RecipeKitchen;
  beforeAll(() => {
    kitchen = new RecipeKitchen({ contents: EXAMPLE });
  });
  afterAll(() => kitchen.close());

  for (const recipe of readRecipes(join(EXAMPLE, "README.md"))) {
    it(recipe.text.slice(0, 70), () => kitchen.run(recipe));
  }

  it("leaves a score and feedback for each ticket", () => {
    const results = readFileSync(join(kitchen.folder, "results.jsonl"), "utf8").trimEnd().split("\n");
    expect(results).toHaveLength(64);
    for (const line of results) {
      const { id, score } = JSON.parse(line) as { id: string; score?: { feedback: string } };
      expect(id).toMatch(/^T-10\d\d$/);
      expect(score?.feedback).toMatch(/\w/);
    }
  });
});
