/**
 * The series that a process has of each publisher. At most METRICS_PUBLISHERS_MAX publishers have their own series: all, if
 * they are few enough, otherwise those that called within the last day. All others share `other`.
 */
import { OTHER_LABEL, OwnSeries } from "@adrelay/core";
import type { PublisherDirectory } from "@adrelay/provider";

export interface PublisherSeriesOptions {
  /** The configured ones. */
  readonly publishers: Pick<PublisherDirectory, "current">;
  readonly publishersMax: number;
}

type Labels = Readonly<Record<string, string>>;

/** A metric with a label `publisher`. */
export interface PublisherMetric {
  /** Begins a publisher's series. If a series began above zero, Prometheus would miss that increase. */
  zero(publisher: string): void;
  remove(publisher: string): void;
}

/** A counter of prom-client. */
interface LabelledCounter {
  inc(labels: Labels, value: number): void;
  remove(labels: Labels): void;
}

/** Says which publishers have their own series, and keeps the series of all metrics that were added. */
export class PublisherSeries {
  readonly #options: PublisherSeriesOptions;
  readonly #own: OwnSeries;
  readonly #metrics: PublisherMetric[] = [];
  /** Whether publishers have shared series. */
  #hasOther = false;

  constructor(options: PublisherSeriesOptions) {
    this.#options = options;
    this.#own = new OwnSeries(options.publishersMax);
    this.#useConfigured();
  }

  /** Adds a metric. The first one of a registry must call `refresh` at each scrape. */
  add(metric: PublisherMetric): void {
    this.#metrics.push(metric);
    for (const publisher of [...this.#own.values, ...(this.#hasOther ? [OTHER_LABEL] : [])]) {
      metric.zero(publisher);
    }
  }

  /** Adds a counter. `labels`: all values of its labels but the publisher. */
  addCounter(counter: LabelledCounter, labels: readonly Labels[]): void {
    this.add({
      zero: (publisher) => {
        for (const others of labels) {
          counter.inc({ publisher, ...others }, 0);
        }
      },
      remove: (publisher) => {
        for (const others of labels) {
          counter.remove({ publisher, ...others });
        }
      },
    });
  }

  /** The value of the label `publisher`. */
  labelOf(publisher: string): string {
    const isNew = !this.#own.has(publisher);
    const label = this.#own.use(publisher, performance.now());
    if (isNew && label === publisher) {
      this.#zero(label);
    }
    return label;
  }

  /** Begins the series of configured publishers, and removes those of publishers that were silent for a day. */
  refresh(): void {
    this.#useConfigured();
    for (const publisher of this.#own.expire(performance.now())) {
      for (const metric of this.#metrics) {
        metric.remove(publisher);
      }
    }
  }

  #zero(publisher: string): void {
    for (const metric of this.#metrics) {
      metric.zero(publisher);
    }
  }

  #useConfigured(): void {
    const { publishers, publishersMax } = this.#options;
    if (publishers.current.length > publishersMax) {
      if (!this.#hasOther) {
        this.#hasOther = true;
        this.#zero(OTHER_LABEL);
      }
      return;
    }
    for (const { id } of publishers.current) {
      this.labelOf(id);
    }
  }
}
