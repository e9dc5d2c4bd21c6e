/** `node --import` loads this before an app: it shifts the app's wall clock by CHAOS_CLOCK_SKEW_MS. */
const skewMs = Number(process.env["CHAOS_CLOCK_SKEW_MS"] ?? 0);
const RightDate = Date;
const now = () => RightDate.now() + skewMs;

globalThis.Date = new Proxy(RightDate, {
  construct: (date, args, newTarget) =>
    Reflect.construct(date, args.length === 0 ? [now()] : args, newTarget),
  get: (date, name) => (name === "now" ? now : Reflect.get(date, name)),
});
