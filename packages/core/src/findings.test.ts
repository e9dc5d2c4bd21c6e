import { VERDICTS } from "@adrelay/contract";
import { expect, test } from "vitest";
import { FINDINGS, isDisagreement, MENTIONS, parseFinding, writeFinding } from "./findings.ts";

test("only a mention by name or with its own link has a label", () => {
  expect(FINDINGS).toEqual([
    "none,no",
    "name,yes",
    "name,no",
    "link,yes",
    "link,no",
    "foreign,no",
    "unknown,no",
  ]);
});

test("each finding is read as it was written", () => {
  for (const written of FINDINGS) {
    const finding = parseFinding(written) ?? expect.fail(written);
    expect(writeFinding(finding)).toBe(written);
  }
});

test.each([undefined, "", "picture,yes"])("%j is no finding that is known here", (written) => {
  expect(parseFinding(written)).toBeUndefined();
});

test("a verdict disagrees if just one of the two has a mention", () => {
  const verdicts = [...VERDICTS, "unknown"] as const;
  const disagreeing = MENTIONS.flatMap((mention) =>
    verdicts
      .filter((verdict) => isDisagreement({ mention }, verdict))
      .map((verdict) => `${mention} ${verdict}`),
  );
  expect(disagreeing).toEqual(["none ok", "name no_ad_used", "link no_ad_used", "foreign no_ad_used"]);
});
