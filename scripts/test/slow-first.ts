/** The order of test files. Vitest starts the largest first, which says little of how long they take. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Small files that take longest in their projects. Started late, each would run alone in the end, with a core idle beside it. */
const SLOW = [
  "ad-model/evaluation/promises",
  "apps/proxy/test/gone-proxy",
  "apps/worker/test/known-outcomes",
  "deploy/prometheus/rules",
  "e2e/canaries",
  "e2e/cli-bulk",
  "e2e/edge",
  "e2e/event-loop",
  "e2e/evidence",
  "e2e/fuzz",
  "e2e/long-outage",
  "e2e/many-publishers",
  "e2e/start",
  "e2e/tool-loops",
].map((name) => `/${name}.test.ts`);

const isSlow = ({ moduleId }: TestSpecification) => SLOW.some((path) => moduleId.endsWith(path));

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const byProject = Map.groupBy(await super.sort(files), ({ project }) => project.name);
    return [...byProject.values()].flatMap((some) => [
      ...some.filter(isSlow),
      ...some.filter((file) => !isSlow(file)),
    ]);
  }
}
