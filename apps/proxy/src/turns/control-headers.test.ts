import { expect, test } from "vitest";
import { readControls } from "./control-headers.ts";

const controlsOf = (headers: Readonly<Record<string, string>>) =>
  readControls((name) => new Map(Object.entries(headers)).get(name));

test.each([
  [{}, false],
  [{ "x-adrelay-ad": "", "x-adrelay-acknowledge": " " }, false],
  [{ "x-adrelay-ad": "On", "x-adrelay-acknowledge": "Automatic" }, false],
  [{ "x-adrelay-acknowledge": " MANUAL " }, true],
])("%j wants an ad, acknowledged by the backend: %s", (headers, isManual) => {
  expect(controlsOf(headers)).toEqual({ kind: "ad_wanted", isManual });
});

test.each(["off", "OFF", " off "])("%j turns the ad off", (value) => {
  expect(controlsOf({ "x-adrelay-ad": value, "x-adrelay-acknowledge": "manuel" })).toEqual({ kind: "off" });
});

test.each(["false", "no", "0", "off, off", "true"])("X-Adrelay-Ad: %s wants no ad, and is named", (value) => {
  expect(controlsOf({ "x-adrelay-ad": value })).toEqual({ kind: "unknown_value", header: "X-Adrelay-Ad" });
});

test.each(["manuel", "auto", "off", "manual, manual"])(
  "X-Adrelay-Acknowledge: %s wants no ad, and is named",
  (value) => {
    expect(controlsOf({ "x-adrelay-acknowledge": value })).toEqual({
      kind: "unknown_value",
      header: "X-Adrelay-Acknowledge",
    });
  },
);
