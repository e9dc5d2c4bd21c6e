/** Traffic and the scrape configuration of an observed stack, for `npm run observe`. */
export { writeScrapeConfig } from "./scrape-config.ts";
export { QUICK_SETTINGS, runTraffic } from "./traffic.ts";
