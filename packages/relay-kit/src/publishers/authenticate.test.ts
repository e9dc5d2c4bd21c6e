import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { openDirectory, publisherSources } from "@adrelay/provider";
import { expect, test } from "vitest";
import { makeAuthenticate } from "./authenticate.ts";

const KEY = "publisher-key-0123456789";
const SOURCES = publisherSources(
  {
    PROVIDER_URL: "http://127.0.0.1:9",
    PROVIDER_API_KEY: "provider-key-0123456789",
    PROVIDER_API_KEY_HEADER: "X-Key",
  },
  [KEY],
  {},
);

function publisherOf(headers: Readonly<Record<string, string>>): string | undefined {
  const opened = openDirectory(SOURCES);
  if (opened.kind === "faulty") {
    return expect.fail(JSON.stringify(opened.faults));
  }
  const authenticate = makeAuthenticate({
    publishers: opened.directory,
    headers: ["X-Service-API-Key", "Authorization"],
    onKeyUse: () => {},
  });
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return authenticate(request)?.id;
}

test.each([
  { "x-service-api-key": KEY },
  { authorization: KEY },
  { authorization: `Bearer ${KEY}` },
  { authorization: `bearer  ${KEY}` },
  { "x-service-api-key": "", authorization: `Bearer ${KEY}` },
])("%j is the publisher's", (headers) => {
  expect(publisherOf(headers)).toBe("default");
});

test.each([
  {},
  { "x-service-api-key": `Bearer ${KEY}` },
  { authorization: `Basic ${KEY}` },
  { authorization: "Bearer" },
  { authorization: `Bearer Bearer ${KEY}` },
  { "x-service-api-key": "of-nobody", authorization: `Bearer ${KEY}` },
])("%j is nobody's", (headers) => {
  expect(publisherOf(headers)).toBeUndefined();
});
