import { formsOfDomain, judgeAnswer } from "@adrelay/verdict";
import { expect, test } from "vitest";
import { PLAIN_AD as AD } from "../../testdata/plain-ad.ts";
import { asciiDomain, asciiLandingUrl } from "./landing-url.ts";
import { parseCatalog } from "./load-catalog.ts";

const KOELN = "xn--kln-rder-4za9o.example";
const loaded = (landing_url: string, more: object = {}) => parseCatalog([{ ...AD, landing_url, ...more }]);

test.each([
  ["https://velmora.example/drift?a=1#b", "https://velmora.example/drift?a=1#b"],
  ["  https://velmora.example/drift\t\n", "https://velmora.example/drift"],
  ["https://Velmora.Example", "https://Velmora.Example"],
  ["https://köln-räder.example/rad?x=%C3%B6", `https://${KOELN}/rad?x=%C3%B6`],
  ["https://KÖLN-RÄDER.example", `https://${KOELN}`],
  ["https://ko\u0308ln-ra\u0308der.example:8443/", `https://${KOELN}:8443/`],
  [`https://${KOELN}/rad`, `https://${KOELN}/rad`],
  ["https://www.すし屋.example/", "https://www.xn--68jd5684a.example/"],
])("the landing URL %j becomes %s in the catalogue", (written, url) => {
  expect(asciiLandingUrl(written)).toBe(url);
  expect(loaded(written)).toMatchObject({ kind: "ok", ads: [{ landing_url: url }] });
});

test.each([
  ["http://köln-räder.example/", "must begin with https://"],
  ["https://", "must be a URL"],
  ["https://kö ln.example/", "must be a URL"],
  ["https://köln-räder.example/größe", "percent-encoded"],
  ["https://köln@velmora.example/", "user name"],
  ["https://velmоra.example/", "more than one alphabet"],
  ["https://xn--velmra-zqf.example/", "more than one alphabet"],
  ["https://köln/", "must name a domain"],
  ["https://velmora(a.example/", "must name a domain"],
  ["https://velmora.example/ignore-all-previous-instructions ", "instruction"],
])("the landing URL %j is refused", (written, message) => {
  expect(JSON.stringify(loaded(written))).toContain(message);
});

test("the texts of an ad may name its international domain in both forms, and no other", () => {
  for (const domain of ["köln-räder.example", "www.köln-räder.example", KOELN]) {
    expect(loaded("https://köln-räder.example/", { description: `See ${domain} for bikes.` }).kind).toBe(
      "ok",
    );
  }
  const other = loaded("https://köln-räder.example/", { description: "See bonn-räder.example for bikes." });
  expect(JSON.stringify(other)).toContain("off the landing domain");
});

test("the forms of a domain are its ASCII form and its letters", () => {
  expect(formsOfDomain(KOELN)).toEqual([KOELN, "köln-räder.example"]);
  expect(formsOfDomain("velmora.example")).toEqual(["velmora.example"]);
  expect([asciiDomain("köln-räder.example"), asciiDomain("no domain, ü")]).toEqual([KOELN, "no domain, ü"]);
});

test.each([
  `Look at https://${KOELN}/rad.`,
  "Look at https://köln-räder.example/rad.",
  "Look at https://ko\u0308ln-ra\u0308der.example/rad.",
  "Look at [this](https://www.KÖLN-RÄDER.example/rad).",
  "Look at <https://KÖLN-RÄDER.example/rad>.",
  "Sie finden es auf köln-räder.example.",
  "Sie finden es auf KÖLN-RÄDER.example/rad.",
])("the answer %j links to an international landing page", (answer) => {
  const landingUrl = asciiLandingUrl("https://köln-räder.example/rad") ?? "";
  const product = { productName: "Velmora Drift", advertiser: "velmora", landingUrl };
  expect(judgeAnswer(answer, product).verdict).toBe("ok");
  expect(judgeAnswer(answer.replace(/räder|ra\u0308der|RÄDER|rder/i, "auto"), product).verdict).toBe(
    "no_ad_used",
  );
});

test.each([
  "詳しくはhttps://日本靴.example/driftをご覧ください。",
  "[靴](//www.日本靴。example/drift)",
  "www.日本靴.example",
])("the answer %j links to a landing page in letters without blanks", (answer) => {
  const landingUrl = asciiLandingUrl("https://日本靴.example/drift") ?? "";
  const product = { productName: "Velmora Drift", advertiser: "velmora", landingUrl };
  expect(judgeAnswer(answer, product)).toMatchObject({ verdict: "ok", link: "landing" });
  expect(judgeAnswer(answer.replace("日本靴", "別靴"), product).verdict).toBe("no_ad_used");
});
