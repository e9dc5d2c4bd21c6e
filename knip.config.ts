import type { KnipConfig } from "knip";

/** Unused files, exports and dependencies fail `npm test`. Each exception below has its reason. */
const config: KnipConfig = {
  // A command of POSIX, and one without which some tests are skipped.
  ignoreBinaries: ["mkfifo", "openssl"],
  workspaces: {
    ".": {
      entry: [
        "scripts/*.ts",
        // These run as separate processes: they are started by their path and not imported.
        "bench/load-generator.ts",
        "bench/abuser.ts",
        "bench/fast-provider.ts",
        "bench/naive/*.ts",
        "bench/streams/{fast-model,generator}.ts",
        "e2e/chaos/shifted-clock.ts",
        "e2e/report-loop-delay.ts",
        "e2e/client/programs/*",
        "e2e/soak-client/backend.mjs",
        "examples/*/{streamed,whole}.ts",
        // Run by hand: see ad-model/README.md.
        "ad-model/fit-signs.ts",
        "ad-model/word-vectors/{list-words,shrink-vectors}.ts",
      ],
      project: [
        "scripts/**",
        "bench/**",
        "e2e/**",
        "examples/**/*.ts",
        "ad-model/**/*.ts",
        "deploy/**/*.ts",
        "openapi/**/*.ts",
      ],
    },
    "apps/*": { project: ["src/**", "test/**"] },
    // Published: others import what it offers. A process of its tests is started by its path.
    "packages/client": { entry: ["test/outbox-process.ts"], project: ["{src,test}/**"] },
    // Only this repository uses the packages, so no index may offer more than is imported.
    "packages/*": { project: ["{src,test}/**"], includeEntryExports: true },
  },
};

export default config;
