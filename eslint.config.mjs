import { createTypeScriptImportResolver } from "eslint-import-resolver-typescript";
import importX from "eslint-plugin-import-x";
import { fileURLToPath } from "node:url";
import tseslint from "typescript-eslint";

const root = fileURLToPath(new URL(".", import.meta.url));

/** From the top down; a layer may import only what stands after it. */
const LAYERS = ["cli", "server", "services", "scoring", "model", "worker"];

/** The transport's packages, which the layers below the services must not know. */
const TRANSPORT = ["@grpc/*", "@connectrpc/*", "@bufbuild/*", "**/gen/**"];

export default tseslint.config(
  { ignores: ["node_modules/", "dist/", ".venv/", ".tools/", "src/gen/", "python/", "coverage/"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    plugins: { "import-x": importX },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: root } },
    settings: {
      "import-x/resolver-next": [createTypeScriptImportResolver()],
      "import-x/extensions": [".ts", ".mjs"],
      "import-x/parsers": { "@typescript-eslint/parser": [".ts"] },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "import-x/no-cycle": "error",
      "import-x/no-duplicates": "error",
      "import-x/no-restricted-paths": ["error", { basePath: root, zones: zones() }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      // Numbers and booleans in a text are what they seem; objects are not.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // An index signature's keys are data: `record["key"]` says so.
      "@typescript-eslint/dot-notation": ["error", { allowIndexSignaturePropertyAccess: true }],
    },
  },
  {
    files: ["src/scoring/**/*.ts", "src/worker/**/*.ts"],
    rules: {
      "no-restricted-imports": [
        "error",
        { patterns: [{ group: TRANSPORT, message: "This layer knows no gRPC and no protobuf." }] },
      ],
    },
  },
  {
    files: ["**/*.mjs"],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
  },
);

function zones() {
  return LAYERS.map((layer, place) => ({
    target: `./src/${layer}`,
    from: LAYERS.slice(0, place).map((above) => `./src/${above}`),
    message: `Dependencies go one way: ${LAYERS.join(" → ")}.`,
  })).filter(({ from }) => from.length > 0);
}
