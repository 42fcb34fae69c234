// What ESLint asks of our TypeScript and JavaScript: the recommended rules, and functions that fit a screen. Formatting is nobody's
// business here, types are the compiler's.

import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  { ignores: ["**/node_modules/", "**/dist/", "web/build/", "target/"] },
  { files: ["**/*.{ts,tsx,js,mjs}"], extends: [tseslint.configs.recommended] },
  {
    files: ["**/*.{ts,tsx,js,mjs}"],
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "max-lines-per-function": ["error", { max: 80 }],
      eqeqeq: "error",
      "no-self-compare": "error",
      "no-template-curly-in-string": "error",
      "no-constant-binary-expression": "error",
      "no-fallthrough": "error",
      "no-sparse-arrays": "error",
      "no-unsafe-finally": "error",
      "no-useless-escape": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
    },
  },
  // A suite is one function; its tests are measured.
  { files: ["**/*.test.ts"], rules: { "max-lines-per-function": "off" } },
  { files: ["crates/screen/tests/xterm/*.js"], rules: { "@typescript-eslint/no-require-imports": "off" } },
);
