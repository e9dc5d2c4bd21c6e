/** What a gateway process may hold in all. The defaults fit a container of 256 MB. */
import { integerType, setting, sizeBetween } from "@adrelay/service-kit";

const MEBIBYTE = 1024 * 1024;

export const LIMIT_SETTINGS = {
  GATEWAY_BYTES_IN_FLIGHT: setting(
    sizeBetween(MEBIBYTE, 64 * 1024 * MEBIBYTE),
    "33554432",
    "Most bytes of requests and of providers' answers that one gateway holds at the same time, their copies included. At least eight times BODY_LIMIT_BYTES.",
  ),
  GATEWAY_CALLS_IN_FLIGHT: setting(
    integerType(1, 1_000_000),
    "1500",
    "Most requests that one gateway works on at the same time, waits included.",
  ),
  GATEWAY_CONNECTIONS: setting(
    integerType(1, 1_000_000),
    "3000",
    "Most connections of the gateway's public listener. If there are more, those without a request are closed first.",
  ),
} as const;

/** A body and its copies, twice: so that a publisher's half has room for the largest one. */
const BODIES_MIN = 8;

/** The limit of bytes: never so low that a body of the largest size could hardly get through. */
export function bytesInFlightMax(settings: {
  readonly GATEWAY_BYTES_IN_FLIGHT: number;
  readonly BODY_LIMIT_BYTES: number;
}): number {
  return Math.max(settings.GATEWAY_BYTES_IN_FLIGHT, BODIES_MIN * settings.BODY_LIMIT_BYTES);
}
