/** A dashboard as plain data: what it asks and how to read it. How that looks in Grafana is build-dashboard.ts' business. */

/** Grafana's names of units: a plain number, a share from 0 to 1, seconds, counts per minute, calls per second, bytes. */
type Unit = "short" | "percentunit" | "s" | "cpm" | "reqps" | "bytes";

interface Query {
  readonly expr: string;
  /** Labels in double braces, or words; a query of one unnamed value needs none. */
  readonly legend: string;
}

export interface PanelSpec {
  /** One number as of now, or lines over time. */
  readonly kind: "number" | "lines";
  /** A question, which the panel answers. */
  readonly title: string;
  /** What to do about it. */
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** From this value on it is red. */
  readonly alarmFrom?: number;
  /** Below this value it is red. */
  readonly alarmBelow?: number;
}

export interface DashboardSpec {
  /** Name of its file and the end of its address. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Whether the queries ask for `$publisher`, which is chosen at the top. */
  readonly hasPublisherChoice: boolean;
  readonly panels: readonly PanelSpec[];
}
