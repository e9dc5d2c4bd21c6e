/** `npm run catalog -- lint`: checks a catalogue of ads, in the folder where npm was called. */
import { fileURLToPath } from "node:url";
import { runLint } from "../apps/ad-server/src/catalog/lint/lint-command.ts";
import { FLOOR_CPM_MICROS_SETTING, SHIPPED_CATALOG_FILE } from "../apps/ad-server/src/config.ts";
import { loadVocabulary } from "../apps/ad-server/src/relevance/load-vocabulary.ts";

const EXIT_UNUSABLE = 2;

// npm itself goes to the folder of package.json.
process.chdir(process.env["INIT_CWD"] || process.cwd());

const floor = FLOOR_CPM_MICROS_SETTING.safeParse(process.env["FLOOR_CPM_MICROS"] || undefined);
if (floor.success) {
  const vocabulary = new URL("../apps/ad-server/catalog/vocabulary.yaml", import.meta.url);
  process.exitCode = runLint(process.argv.slice(2), {
    nowMs: Date.now(),
    floorCpmMicros: floor.data,
    categories: new Set(loadVocabulary(fileURLToPath(vocabulary)).keys()),
    defaultFile: process.env["CATALOG_FILE"]?.trim() || SHIPPED_CATALOG_FILE,
    print: (text) => process.stdout.write(text),
    complain: (text) => process.stderr.write(`${text}\n`),
  });
} else {
  process.stderr.write("FLOOR_CPM_MICROS can't be used\n");
  process.exitCode = EXIT_UNUSABLE;
}
