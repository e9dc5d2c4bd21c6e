import { type BuiltDashboard, buildDashboard } from "./build-dashboard.ts";
import { DELIVERY } from "./delivery.ts";
import { GATEWAY } from "./gateway.ts";
import { LIMITS } from "./limits.ts";
import { MONEY } from "./money.ts";
import { PUBLISHER } from "./publisher.ts";
import { TURNS } from "./turns.ts";

/** All dashboards, as the files that Grafana reads. */
export function buildDashboards(): readonly BuiltDashboard[] {
  return [MONEY, DELIVERY, GATEWAY, LIMITS, PUBLISHER, TURNS].map(buildDashboard);
}
