/** Documents that are made from the code: they can't drift, and a test holds the files against these. */
import { ERROR_CATALOGUE } from "@adrelay/contract";
import { decideTransition, ENTRY_EVENTS, ENTRY_STATES } from "@adrelay/core";
import { renderEnvExample } from "@adrelay/service-kit";
import { z } from "zod";
import { AD_SERVER_SETTINGS } from "../../apps/ad-server/src/config.ts";
import { GATEWAY_SETTINGS } from "../../apps/gateway/src/config.ts";
import { WORKER_SETTINGS } from "../../apps/worker/src/config.ts";

export interface GeneratedDocument {
  /** Path from the root of the repository. */
  readonly path: string;
  readonly text: string;
}

const GENERATED = "<!-- Generated from the code by `pnpm generate`: edit there. -->";

export function generateDocuments(): GeneratedDocument[] {
  return [
    { path: ".env.example", text: envExample() },
    { path: "docs/errors.md", text: errors() },
    { path: "docs/state-table.md", text: stateTable() },
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
    "`code`: codes are never renamed and never reused. `after` means: once Retry-After has passed. `rate_limited` is",
    "reserved: nothing sends it yet.",
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
