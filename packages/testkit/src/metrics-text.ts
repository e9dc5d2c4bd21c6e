/** A metric's samples by their labels, as `name{a="x",b="y"}`; labels sorted by name. */
export type Samples = ReadonlyMap<string, number>;

/** Reads Prometheus' text format. */
export function parseMetrics(text: string): Samples {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^([a-z_:]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match !== null) {
      const [, name = "", labels = "", value = ""] = match;
      const sorted = (labels.match(/\w+="[^"]*"/g) ?? []).sort().join(",");
      samples.set(sorted === "" ? name : `${name}{${sorted}}`, Number(value));
    }
  }
  return samples;
}

/** Fetches a process' metrics. */
export async function fetchMetrics(opsUrl: string): Promise<Samples> {
  const response = await fetch(`${opsUrl}/metrics`);
  return parseMetrics(await response.text());
}

/** Sum of a metric's samples whose labels include all of those given. */
export function sumOf(samples: Samples, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let sum = 0;
  for (const [key, value] of samples) {
    const [metric = "", rest = ""] = key.split("{", 2);
    if (metric === name && wanted.every((label) => rest.includes(label))) {
      sum += value;
    }
  }
  return sum;
}
