import { expect, test } from "vitest";
import { proxiesOf, proxyFor } from "./proxies.ts";

const isDirect = (exempt: string, url: string) =>
  proxyFor(
    proxiesOf({ HTTP_PROXY: "http://p:1", HTTPS_PROXY: "http://p:2", NO_PROXY: [exempt] }),
    new URL(url),
  ) === undefined;

test.each([
  ["*", "https://ads.example"],
  ["ads.example", "https://ads.example"],
  ["ADS.Example", "https://ads.example"],
  ["ads.example.", "https://ads.example"],
  ["example", "https://ads.example"],
  [".example", "https://ads.example"],
  ["*.example", "https://ads.example"],
  ["ads.example:443", "https://ads.example"],
  ["ads.example:8443", "https://ads.example:8443"],
  ["*:80", "http://ads.example"],
  ["127.0.0.1", "http://127.0.0.1:8090"],
  ["127.0.0.1:8090", "http://127.0.0.1:8090"],
  ["10.0.0.0/8", "http://10.1.2.3"],
  ["::1", "http://[::1]:8090"],
  ["[::1]", "http://[::1]:8090"],
  ["[::1]:8090", "http://[::1]:8090"],
  ["fd00::/8", "http://[fd12::1]"],
])("NO_PROXY=%s covers %s", (exempt, url) => {
  expect(isDirect(exempt, url)).toBe(true);
});

test.each([
  ["", "https://ads.example"],
  [".", "https://ads.example"],
  ["ads.example", "https://other-ads.example"],
  ["ds.example", "https://ads.example"],
  ["ads.example.com", "https://ads.example"],
  ["ads.example:8443", "https://ads.example"],
  ["*:80", "https://ads.example"],
  ["0.0.1", "http://127.0.0.1"],
  ["10.0.0.0/8", "http://11.1.2.3"],
  ["10.0.0.0/8", "http://10.example"],
  ["10.0.0.0/99", "http://10.1.2.3"],
  ["example/8", "http://ads.example"],
  ["::1", "http://127.0.0.1"],
])("NO_PROXY=%s doesn't cover %s", (exempt, url) => {
  expect(isDirect(exempt, url)).toBe(false);
});

test("each scheme has its own proxy", () => {
  const proxies = proxiesOf({ HTTP_PROXY: "http://p:1" });
  expect(proxyFor(proxies, new URL("http://a"))).toBe("http://p:1");
  expect(proxyFor(proxies, new URL("https://a"))).toBeUndefined();
});
