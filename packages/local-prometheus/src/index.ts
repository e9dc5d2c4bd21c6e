/** Finds or fetches a Prometheus, runs one and asks it: for tests and for `npm run observe`. */
export {
  describeMissing,
  type FoundPrometheus,
  findPrometheus,
  type PrometheusPrograms,
} from "./find-prometheus.ts";
export {
  type PrometheusAnswer,
  PrometheusClient,
  type Rule,
  type Sample,
  type Target,
} from "./prometheus-client.ts";
export { PrometheusStartError, type RunningPrometheus, startPrometheus } from "./start-prometheus.ts";
