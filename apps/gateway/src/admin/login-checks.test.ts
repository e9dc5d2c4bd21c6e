import { LoginGuard } from "@adrelay/service-kit";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { checkLogins } from "./login-checks.ts";

test("twenty wrong tokens within ten minutes are warned of, and requests without one are not", () => {
  let nowMs = 0;
  const guard = new LoginGuard({ registry: new Registry(), log: { warn: () => {} }, now: () => nowMs });
  const refuse = (count: number) => {
    for (let one = 0; one < count; one += 1) {
      guard.count("metrics", one % 2 === 0 ? "slowed" : "unknown");
      guard.count("metrics", "missing");
    }
  };
  refuse(19);
  expect(checkLogins(guard)).toEqual({
    name: "logins",
    status: "ok",
    detail: "19 wrong tokens at this gateway in the last 10 minutes",
  });
  nowMs = 600_000;
  refuse(1);
  expect(checkLogins(guard)).toMatchObject({
    status: "warn",
    detail: expect.stringMatching(/^20 wrong tokens/),
  });
  nowMs = 660_000;
  expect(checkLogins(guard)).toMatchObject({ status: "ok" });
});
