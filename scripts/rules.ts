/** `npm run -s rules -- --runbooks URL`: prints the rules for Prometheus with links to your copy of the runbooks. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { z } from "zod";
import { linkRunbooks } from "../deploy/prometheus/link-runbooks.ts";

const RULES = new URL("../deploy/prometheus/rules.yml", import.meta.url);
const EXIT_USAGE = 2;

const HELP = `Usage: npm run -s rules -- --runbooks URL

Prints deploy/prometheus/rules.yml. Each alert links to its runbook below URL, such as
https://wiki.example.com/adrelay/runbooks/, where you keep the files of docs/runbooks.
`;

const { values } = parseArgs({
  options: { runbooks: { type: "string" }, help: { type: "boolean", short: "h" } },
  strict: false,
});
const address = z.url({ protocol: /^https?$/ }).safeParse(values.runbooks);
if (values.help === true) {
  process.stdout.write(HELP);
} else if (address.success) {
  process.stdout.write(linkRunbooks(readFileSync(RULES, "utf8"), address.data));
} else {
  process.stderr.write(`rules: --runbooks must be an http:// or https:// URL\n\n${HELP}`);
  process.exitCode = EXIT_USAGE;
}
