/** Paths of the service's two operations and of the gateway's look-up; each is also served without its last slash. */
export const INJECTION_PATH = "/api/ad-injection/start/";
export const ACKNOWLEDGE_PATH = "/api/ad-injection/acknowledge/";
export const ACKNOWLEDGMENTS_PATH = "/api/ad-injection/acknowledgments/";

/** Default header of the caller's key, and of ours towards a provider. */
export const API_KEY_HEADER = "X-Service-API-Key";
export const REQUEST_ID_HEADER = "X-Request-Id";
/** Carries `ad_ack_id`: the same in each attempt of one acknowledgment. */
export const IDEMPOTENCY_KEY_HEADER = "Idempotency-Key";
