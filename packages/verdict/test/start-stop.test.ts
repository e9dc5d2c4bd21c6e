/** The long-lived part of the package keeps the contract of start and stop. */
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import { AnswerJudge } from "../src/answer-judge.ts";

startStopSuite("the judge of answers", () => new AnswerJudge({ onFailed: () => {} }), {
  isRunning: (judge) => judge.isRunning,
});
