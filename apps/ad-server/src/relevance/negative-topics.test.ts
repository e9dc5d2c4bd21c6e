import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { SHIPPED_MODEL as model } from "../../testdata/shipped-model.ts";
import { type Ad, adSchema } from "../catalog/ad.ts";
import { NegativeTopics, topicJudge } from "./negative-topics.ts";

const adOf = (id: string, ...negative_topics: string[]) =>
  adSchema.parse({ ...PLAIN_AD, id, negative_topics });

/** Whether a prompt is about one of an ad's negative topics. */
async function isExcluded(ad: Ad, prompt: string) {
  return (await NegativeTopics.build([ad], model)).read(model.read(prompt))(ad);
}

test.each([
  ["running shoes", "Which trainers should I buy for my first marathon?"],
  ["car rental", "I need to rent a car in Lisbon for a week"],
  ["mattresses", "Welche Matratze ist gut für Seitenschläfer?"],
  ["password managers", "¿Qué gestor de contraseñas me recomiendas?"],
])("the topic %j excludes the prompt %j", async (topic, prompt) => {
  expect(await isExcluded(adOf("a", topic), prompt)).toBe(true);
  expect(await isExcluded(adOf("a", "payroll software", topic), prompt)).toBe(true);
});

test.each([
  ["running shoes", "Which database should I use for time series?"],
  ["payroll software", "Which trainers should I buy for my first marathon?"],
  ["qwzx vbnk", "Which trainers should I buy for my first marathon?"],
  ["!!!", "I need to rent a car in Lisbon for a week"],
])("the topic %j doesn't exclude the prompt %j", async (topic, prompt) => {
  expect(await isExcluded(adOf("a", topic), prompt)).toBe(false);
});

test("each ad has only its own negative topics", async () => {
  const ads = [adOf("shoes", "running shoes"), adOf("cars", "car rental"), adSchema.parse(PLAIN_AD)];
  const isUnwanted = (await NegativeTopics.build(ads, model)).read(
    model.read("I want to rent a car in Lisbon"),
  );
  expect(ads.map(isUnwanted)).toEqual([false, true, false]);
});

test("each topic is read once, however many ads share it", async () => {
  let reads = 0;
  const counting = {
    read: (text: string) => {
      reads += 1;
      return model.read(text);
    },
  };
  await NegativeTopics.build(
    Array.from({ length: 200 }, (_, index) => adOf(`ad-${index}`, "wine", "beer")),
    counting,
  );
  expect(reads).toBe(2);
});

test("a topic is judged as useful, as the ad's own, or as unclear", () => {
  const judge = topicJudge(model);
  const ad = adOf("shoes");
  expect(judge("car rental", ad)).toBe("useful");
  expect(judge("running shoes", ad)).toBe("own");
  expect(judge("qwzx vbnk", ad)).toBe("unclear");
});
