/** `npm run soak:client`: a backend with the client under kills and an outage. The bootstrap starts it. */
import { randomUUID } from "node:crypto";
import { provideRedis } from "@adrelay/dev-servers";
import { runSoak, type SoakResult } from "../e2e/soak-client/index.ts";
import { SOAK_COMMAND, type SoakCommandOptions } from "../e2e/soak-client/options.mjs";
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { longRun } from "./long-run.ts";

const NAME = "npm run soak:client";
const say = (line: string) => console.log(line);

const options = optionsOrExit(NAME, SOAK_COMMAND);
await longRun({ name: NAME, run: async (folder) => (await provideRedis(say)) && soak(options, folder) });

/** Resolves to whether every check held. */
async function soak(
  { ads, downMs, kills, seed: given }: SoakCommandOptions,
  folder: string,
): Promise<boolean> {
  const seed = given ?? randomUUID().slice(0, 8);
  say(`seed ${seed}: ${ads} ads, ${kills} kills, the relay is down for ${downMs / 1000} s`);
  const result = await runSoak({ ads, downMs, kills, seed, folder, say });
  return report(result);
}

function report({ lost, doubled, changed, faults, files, ...figures }: SoakResult): boolean {
  say(`ads: ${figures.ads}, sold to a process that was killed before it knew: ${figures.unseen}`);
  say(
    `acknowledged with an empty text, because the process was killed before it stored one: ${figures.emptied}`,
  );
  say(`most memory of a backend: ${Math.round(figures.rssBytesMax / 1024 / 1024)} MiB`);
  const checks = Object.entries({ lost, doubled, changed, faults, files });
  for (const [name, found] of checks) {
    say(
      `${name}: ${found.length === 0 ? "none" : `${found.length}, such as ${found.slice(0, 3).join(", ")}`}`,
    );
  }
  return checks.every(([, found]) => found.length === 0);
}
