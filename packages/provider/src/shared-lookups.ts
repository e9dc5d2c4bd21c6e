/**
 * Look-ups of host names. libuv runs only a few at the same time, and one may hang for half a minute. So all connections to a
 * host wait for one look-up, and a host whose look-up hangs holds up no other host.
 */
import type { LookupFunction } from "node:net";

type LookupCallback = Parameters<LookupFunction>[2];

/** Makes a function that looks a host up once for all that ask while the look-up runs. */
export function shareLookups(lookUp: LookupFunction): LookupFunction {
  const waiting = new Map<string, LookupCallback[]>();
  return (host, options, callback) => {
    const { family, hints, all, order } = options;
    const key = JSON.stringify([host.toLowerCase(), family, hints, all, order]);
    const known = waiting.get(key);
    if (known !== undefined) {
      known.push(callback);
      return;
    }
    const callbacks = [callback];
    waiting.set(key, callbacks);
    lookUp(host, options, (...result) => {
      waiting.delete(key);
      for (const each of callbacks) {
        each(...result);
      }
    });
  };
}
