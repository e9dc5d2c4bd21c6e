import type { PanelSpec } from "./dashboard-spec.ts";
import { ledgerPerMinuteBy } from "./promql.ts";

const LABELS = "mention, label, status";

/** What readers of turns see of their ads, and whether the provider's verdict agrees. */
export function findingPanels(): readonly PanelSpec[] {
  return [
    {
      kind: "lines",
      title: "What do readers see of the ads?",
      description:
        "none: the model left the ad out. A mention without a label isn't marked as an ad: speak with the publisher.",
      unit: "cpm",
      queries: [
        {
          expr: ledgerPerMinuteBy("mention, label", "adrelay_answers_total", LABELS),
          legend: "{{mention}}, label: {{label}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Which verdicts contradict the text?",
      description:
        "no_ad_used: ads that stand in answers aren't paid for. ok: ads are paid for that no reader sees. Ask the provider.",
      unit: "cpm",
      queries: [
        {
          expr: ledgerPerMinuteBy("publisher, status", "adrelay_verdict_disagreements_total", LABELS),
          legend: "{{publisher}} {{status}}",
        },
      ],
    },
  ];
}
