import { readNumberOptions } from "./number-options.mjs";

const NUMBERS = {
  ads: { byDefault: 10_000, max: 1_000_000 },
  rate: { byDefault: 100, max: 10_000 },
  seconds: { byDefault: 30, max: 600 },
};

export const BENCH_AD_SERVER_HELP = `Usage: npm run bench:ad-server -- [--ads N] [--rate N] [--seconds N]

Measures the ad server with many ads, on a Redis of its own: how long it takes to start, and how long an injection takes at
a steady rate, sent on time whether or not the earlier ones have been answered. Everything is stopped and removed in the end.

  --ads N      ads of the catalogue (default: ${NUMBERS.ads.byDefault})
  --rate N     injections a second (default: ${NUMBERS.rate.byDefault})
  --seconds N  how long they are sent (default: ${NUMBERS.seconds.byDefault})
  --help       this text

Exit code: 0, however long they took; 1 if it could not be measured, 130 on Ctrl-C.
`;

/** Pure: what a call of `npm run bench:ad-server` asks for. */
export function readBenchAdServerOptions(parsed) {
  return readNumberOptions("bench:ad-server", parsed, NUMBERS);
}
