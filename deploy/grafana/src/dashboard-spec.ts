/** A dashboard as plain data: its queries and how to read them. build-dashboard.ts decides how it looks in Grafana. */

/** Grafana's names of units: a plain number, a share from 0 to 1, seconds, counts per minute, calls per second, bytes. */
type Unit = "short" | "percentunit" | "s" | "cpm" | "reqps" | "bytes";

interface Query {
  readonly expr: string;
  /** Labels in double braces, or words. */
  readonly legend: string;
}

export interface PanelSpec {
  /** One number as of now, or lines over time. */
  readonly kind: "number" | "lines";
  /** The question that the panel answers. */
  readonly title: string;
  /** What to do about it. */
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** The panel is red from this value on. */
  readonly alarmFrom?: number;
  /** The panel is red below this value. */
  readonly alarmBelow?: number;
}

export interface DashboardSpec {
  /** The name of its file and the end of its address. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Whether the queries use `$publisher`, which is chosen at the top. */
  readonly hasPublisherChoice: boolean;
  readonly panels: readonly PanelSpec[];
}
