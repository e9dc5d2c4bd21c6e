/** Documents that are made from the code: they can't drift, and a test holds the files against these. */
import { ERROR_CATALOGUE } from "@adrelay/contract";
import { decideTransition, ENTRY_EVENTS, ENTRY_STATES } from "@adrelay/core";
import { renderEnvExample } from "@adrelay/service-kit";
import { z } from "zod";
import { catalogJsonSchema } from "../../apps/ad-server/src/catalog/ad.ts";
import { AD_SERVER_SETTINGS } from "../../apps/ad-server/src/config.ts";
import { COMMAND_PATHS, renderHelp } from "../../apps/cli/src/command-line.ts";
import { GATEWAY_SETTINGS } from "../../apps/gateway/src/config.ts";
import { WORKER_SETTINGS } from "../../apps/worker/src/config.ts";
import { buildDashboards } from "../../deploy/grafana/src/dashboards.ts";
import { metricTables } from "./metrics-document.ts";

export interface GeneratedDocument {
  /** Path from the root of the repository. */
  readonly path: string;
  readonly text: string;
}

const GENERATED = "<!-- Generated from the code by `pnpm generate`: edit there. -->";

export async function generateDocuments(): Promise<GeneratedDocument[]> {
  return [
    { path: ".env.example", text: envExample() },
    { path: "docs/errors.md", text: errors() },
    { path: "docs/state-table.md", text: stateTable() },
    { path: "docs/metrics.md", text: await metrics() },
    { path: "docs/cli.md", text: await commandReference() },
    {
      path: "apps/ad-server/catalog/catalog.schema.json",
      text: `${JSON.stringify(catalogJsonSchema(), null, 2)}\n`,
    },
    ...buildDashboards().map(({ name, json }) => ({
      path: `deploy/grafana/dashboards/${name}.json`,
      text: json,
    })),
  ];
}

function envExample(): string {
  const sections = [
    { title: "Gateway", shape: GATEWAY_SETTINGS },
    { title: "Worker", shape: WORKER_SETTINGS },
    { title: "Ad server", shape: AD_SERVER_SETTINGS },
  ];
  return renderEnvExample(sections, (type) => z.globalRegistry.get(type));
}

function errors(): string {
  const rows = Object.entries(ERROR_CATALOGUE).map(
    ([code, { status, retryable, title }]) => `| \`${code}\` | ${status} | ${retryable} | ${title} |`,
  );
  return [
    GENERATED,
    "# Errors",
    "",
    "Every error answer of ours is `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `code`,",
    "`request_id`, and where there is more to say `detail`; a 422 about fields has `errors`, each with `path` and",
    "`message`. (An ad service's own 400, 409 or 422 to an injection passes through in its own form.) Decide by",
    "`code`: codes are never renamed and never reused. `after` means: once Retry-After has passed. `key_revoked` and",
    "`rate_limited` come from the ad server alone.",
    "",
    "| Code | Status | Retry helps | Meaning |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

function stateTable(): string {
  const cell = (state: (typeof ENTRY_STATES)[number], event: (typeof ENTRY_EVENTS)[number]) => {
    const transition = decideTransition(state, event);
    return transition.kind === "moved" ? `**${transition.to}**` : transition.kind === "same" ? "same" : "–";
  };
  const rows = ENTRY_EVENTS.map(
    (event) => `| ${event} | ${ENTRY_STATES.map((state) => cell(state, event)).join(" | ")} |`,
  );
  return [
    GENERATED,
    "# Every state with every event",
    "",
    "`same`: it happened before, nothing changes and nothing is counted. `–`: not allowed, nothing changes.",
    "",
    `| Event | ${ENTRY_STATES.join(" | ")} |`,
    `|---|${ENTRY_STATES.map(() => "---").join("|")}|`,
    ...rows,
    "",
  ].join("\n");
}

async function metrics(): Promise<string> {
  return [
    GENERATED,
    "# Metrics",
    "",
    "Prometheus' text format, at `/metrics` of each ops listener; Node's own metrics stand beside these. Label values",
    "are bounded: publishers are the configured ones and those that ever were, operations and outcomes are fixed sets,",
    "an HTTP status is one that we answer. Series of configured publishers are there from the start, at zero. What is",
    "worth an alarm: [operations.md](operations.md#what-to-watch).",
    "",
    ...(await metricTables()),
  ].join("\n");
}

const CLI_INTRODUCTION = `# The command adrelay

\`adrelay\` operates a relay through the admin API of its gateway. In a checkout, run \`npm run adrelay -- <command>\`. In
a script, run \`npm run -s adrelay -- <command>\`, because npm otherwise prints two lines of its own first. To use the
command elsewhere, run \`npm run pack:cli\`: it packs the command as one file without dependencies, for Node 20 and newer,
and prints the path of the package. You can install this package, or publish it for \`npx adrelay\`.

**The address.** The command calls the first address that it finds:

1. \`--url\`
2. \`ADRELAY_URL\`
3. the stack that \`npm start\` runs, in the current folder or in this checkout
4. http://127.0.0.1:8081

**The token.** The command sends the first token that it finds: from \`--token-file\`, \`ADRELAY_ADMIN_TOKEN\`,
\`ADMIN_TOKEN\`, or a running \`npm start\`. It sends the token of \`npm start\` only to that stack. There is no option for
the token itself, because the list of processes would show it.

**Scripts.** With \`--json\`, standard output has only the answers of the API, unchanged, one line per answer.
\`dead list --all\` prints one line per page, and \`dead replay ID ID\` one line per id. Messages for people go to standard
error. The exit code says how the command ended. Without a terminal there is no progress bar, no colour and no question.
\`NO_COLOR\` turns colour off everywhere. If the terminal is too narrow for a table, each row is printed as a paragraph.
Every call ends after \`--timeout\` at the latest.

**Bulk replays.** \`dead replay\` with a filter or \`--all\` counts the dead letters that match and asks for confirmation;
\`--yes\` skips the question. Then it shows the progress. "Replayed" means put back on the queue; use \`status\` to see if
they are delivered. Ctrl-C stops watching, but the replay continues: \`adrelay replays show ID --watch\` watches it again,
and \`adrelay replays cancel ID\` cancels it. If there is no answer to a change, the gateway may have made the change:
check before you repeat it.

**Shell completion.** If \`adrelay\` is on your PATH, run \`adrelay completion >> ~/.bashrc\` (or \`~/.zshrc\`).
`;

/** The help of every command. The options of every command are listed only once. */
async function commandReference(): Promise<string> {
  const block = (text: string) => ["```text", text, "```", ""];
  const sections = await Promise.all(
    COMMAND_PATHS.map(async (words) => [
      `## ${words.join(" ")}`,
      "",
      ...block(withoutCommonOptions(await renderHelp(words))),
    ]),
  );
  const [first = "", ...rest] = CLI_INTRODUCTION.split("\n");
  return [GENERATED, first, ...rest, ...block(await renderHelp([])), ...sections.flat()].join("\n");
}

/** Drops the paragraph of options that all commands share. */
function withoutCommonOptions(help: string): string {
  return help
    .split("\n\n")
    .filter((part) => !part.startsWith("Options of every command:"))
    .join("\n\n");
}
