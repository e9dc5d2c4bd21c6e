import type { KnipConfig } from "knip";

/** Unused files, exports and dependencies fail `npm test`. Each exception below has its reason. */
const config: KnipConfig = {
  workspaces: {
    ".": {
      entry: [
        "scripts/*.ts",
        // These run as processes of their own: a path starts them, no import.
        "bench/load-generator.ts",
        "bench/fast-provider.ts",
        "bench/naive/*.ts",
        "e2e/chaos/shifted-clock.ts",
        // Run by hand when the word vectors are made anew: see ad-model/README.md.
        "ad-model/word-vectors/{list-words,shrink-vectors}.ts",
      ],
      project: ["scripts/**", "bench/**", "e2e/**", "ad-model/**/*.ts", "deploy/**/*.ts"],
    },
    "apps/*": { project: ["src/**", "test/**"] },
    // Only this repository uses the packages, so no index may offer more than is imported.
    "packages/*": { project: ["{src,test}/**"], includeEntryExports: true },
  },
};

export default config;
