/** Loaded before an app by `node --import`: its wall clock is off by CHAOS_CLOCK_SKEW_MS. */
const skewMs = Number(process.env["CHAOS_CLOCK_SKEW_MS"] ?? 0);
const RightDate = Date;

globalThis.Date = class extends RightDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RightDate.now() + skewMs] : args));
  }

  static now() {
    return RightDate.now() + skewMs;
  }
};
