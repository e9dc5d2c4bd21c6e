import { expect, test } from "vitest";
import { describeFailure, ProxyError } from "./call-failures.ts";

const withCode = (code: string) => Object.assign(new TypeError("a text with secret"), { code });

test.each([
  ["ENOTFOUND", "dns_failed"],
  ["EAI_AGAIN", "dns_failed"],
  ["EAI_FAIL", "dns_failed"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "certificate_invalid"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate_invalid"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "certificate_invalid"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "certificate_invalid"],
  ["CERT_HAS_EXPIRED", "certificate_invalid"],
  ["CERT_NOT_YET_VALID", "certificate_invalid"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate_invalid"],
  ["CRL_HAS_EXPIRED", "certificate_invalid"],
  ["INVALID_PURPOSE", "certificate_invalid"],
  ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "certificate_invalid"],
  ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "certificate_invalid"],
  ["UND_ERR_PRX_CONN", "proxy_failed"],
  ["UND_ERR_HEADERS_OVERFLOW", "answer_too_large"],
  ["ECONNREFUSED", "unreachable"],
  ["ENETUNREACH", "unreachable"],
  ["ETIMEDOUT", "unreachable"],
  ["UND_ERR_CONNECT_TIMEOUT", "unreachable"],
  ["ECONNRESET", "connection_lost"],
  ["EPIPE", "connection_lost"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "connection_lost"],
])("%s means %s, and is the cause", (cause, code) => {
  expect(describeFailure(withCode(cause))).toEqual({ code, cause });
});

test("OpenSSL's slashes become underscores", () => {
  expect(describeFailure(withCode("ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE"))).toEqual({
    code: "certificate_invalid",
    cause: "ERR_SSL_SSL_TLS_ALERT_BAD_CERTIFICATE",
  });
});

test("an error without a code is named by its class, and a text is no cause", () => {
  expect(describeFailure(new RangeError("secret"))).toEqual({ code: "connection_lost", cause: "RangeError" });
  expect(describeFailure(withCode("a text with secret")).cause).toBeUndefined();
  expect(describeFailure(withCode("X".repeat(65))).cause).toBeUndefined();
});

test("an error of the proxy has the proxy's cause", () => {
  expect(describeFailure(new ProxyError("http_407"))).toEqual({ code: "proxy_failed", cause: "http_407" });
});
