/** `npm run catalog`: checks or explains a catalogue of ads, in the folder where npm was called. */
import { runCatalogCommand } from "../apps/ad-server/src/catalog/catalog-command.ts";
import { FLOOR_CPM_MICROS_SETTING, SHIPPED_CATALOG_FILE } from "../apps/ad-server/src/config.ts";
import { loadShippedModel } from "../apps/ad-server/src/prompt-model/prompt-model.ts";
import { adExplainer } from "../apps/ad-server/src/relevance/ad-reading.ts";
import { topicJudge } from "../apps/ad-server/src/relevance/negative-topics.ts";
import { environment, returnToCallersFolder } from "./environment.ts";

const EXIT_UNUSABLE = 2;

returnToCallersFolder();

const floor = FLOOR_CPM_MICROS_SETTING.safeParse(environment["FLOOR_CPM_MICROS"] || undefined);
if (floor.success) {
  const model = loadShippedModel();
  process.exitCode = runCatalogCommand(process.argv.slice(2), {
    nowMs: Date.now(),
    floorCpmMicros: floor.data,
    explain: adExplainer(model),
    judgeTopic: topicJudge(model),
    defaultFile: environment["CATALOG_FILE"]?.trim() || SHIPPED_CATALOG_FILE,
    print: (text) => process.stdout.write(text),
    printError: (text) => process.stderr.write(`${text}\n`),
  });
} else {
  const why = floor.error.issues.map(({ message }) => message).join("; ");
  process.stderr.write(`FLOOR_CPM_MICROS: ${why}\n`);
  process.exitCode = EXIT_UNUSABLE;
}
