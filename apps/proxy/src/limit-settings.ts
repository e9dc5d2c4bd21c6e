/** What a proxy process may hold in all. */
import { integerType, setting, sizeBetween } from "@adrelay/service-kit";

const MEBIBYTE = 1024 * 1024;

export const LIMIT_SETTINGS = {
  PROXY_EDIT_LIMIT_BYTES: setting(
    sizeBetween(1024, 64 * MEBIBYTE),
    "8388608",
    "Longest body of a model call that may get an ad. A longer one passes through as it comes.",
  ),
  PROXY_BYTES_IN_FLIGHT: setting(
    sizeBetween(MEBIBYTE, 64 * 1024 * MEBIBYTE),
    "67108864",
    "Most bytes of such bodies that one proxy holds at the same time. If there are more, calls pass through without an ad.",
  ),
  PROXY_CALLS_IN_FLIGHT: setting(
    integerType(1, 1_000_000),
    "3000",
    "Most calls of one publisher that one proxy works on at the same time, streams included. Above it, its calls get 503. A tenth more is kept for other publishers.",
  ),
  PROXY_CONNECTIONS: setting(
    integerType(1, 1_000_000),
    "6000",
    "Most connections of the proxy's public listener. If there are more, those without a call are closed first.",
  ),
} as const;
