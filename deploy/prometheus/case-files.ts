/**
 * The cases of a promtool test file, each as a file of its own beside the rules that it is about. promtool evaluates every rule of
 * a file at every step of a case: all rules for each case would take ten times as long.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { z } from "zod";

const ruleSchema = z.looseObject({
  alert: z.string().optional(),
  record: z.string().optional(),
  expr: z.string(),
});
const rulesSchema = z.object({
  groups: z.array(z.looseObject({ name: z.string(), rules: z.array(ruleSchema) })),
});
const timeSchema = z.string().regex(/^(?:\d+h)?(?:\d+m)?$/);
const caseSchema = z.looseObject({
  name: z.string(),
  alert_rule_test: z.array(z.looseObject({ alertname: z.string(), eval_time: timeSchema })).default([]),
  promql_expr_test: z.array(z.looseObject({ eval_time: timeSchema })).default([]),
});
const testFileSchema = z.object({ evaluation_interval: z.string(), tests: z.array(caseSchema) });

type Rules = z.infer<typeof rulesSchema>;
type Case = z.infer<typeof caseSchema>;

/** Both are parsed YAML. */
export interface CaseFilesInput {
  readonly rules: unknown;
  readonly testFile: unknown;
}

/** Writes the files into the folder. Returns those that promtool tests. Each is named for its case. */
export function writeCaseFiles(folder: string, { rules, testFile }: CaseFilesInput): readonly string[] {
  const all = rulesSchema.parse(rules);
  const { evaluation_interval, tests } = testFileSchema.parse(testFile);
  return tests.map((one) => {
    const tested = one.alert_rule_test.map(({ alertname }) => alertname);
    // An expression may be about any rule.
    const needed = one.promql_expr_test.length > 0 ? all : rulesFor(all, new Set(tested));
    return writeCase(folder, { rules: needed, evaluation_interval, tests: [one] });
  });
}

/**
 * As `writeCaseFiles`, but all rules are evaluated, seldom, and no alert is expected. So promtool fails only if a rule can't be
 * evaluated on the series of a case.
 */
export function writeFilesOfAllRules(folder: string, { rules, testFile }: CaseFilesInput): readonly string[] {
  const all = rulesSchema.parse(rules);
  return testFileSchema.parse(testFile).tests.map((one) => {
    const expected = {
      expr: "vector(1)",
      eval_time: lastTime(one),
      exp_samples: [{ labels: "{}", value: 1 }],
    };
    const tests = [{ ...one, alert_rule_test: [], promql_expr_test: [expected] }];
    return writeCase(folder, { rules: all, evaluation_interval: "10m", tests });
  });
}

/** The rules of these names, with the recorded ones that they are made of. */
function rulesFor({ groups }: Rules, names: ReadonlySet<string>): Rules {
  const recorded = groups.flatMap((group) => group.rules).filter(({ record }) => record !== undefined);
  const kept = new Set(names);
  const isKept = ({ alert, record }: z.infer<typeof ruleSchema>) => kept.has(alert ?? record ?? "");
  const keepSources = (expr: string) => {
    for (const { record = "", expr: source } of recorded) {
      if (expr.includes(record) && !kept.has(record)) {
        kept.add(record);
        keepSources(source);
      }
    }
  };
  for (const rule of groups.flatMap((group) => group.rules).filter(isKept)) {
    keepSources(rule.expr);
  }
  return {
    groups: groups
      .map((group) => ({ ...group, rules: group.rules.filter(isKept) }))
      .filter((group) => group.rules.length > 0),
  };
}

interface CaseFile {
  readonly rules: Rules;
  readonly evaluation_interval: string;
  readonly tests: readonly Case[];
}

function writeCase(folder: string, { rules, ...rest }: CaseFile): string {
  const name = rest.tests[0]?.name.replaceAll(/\W+/g, "-") ?? "";
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.rules.yml`), stringify(rules));
  const file = join(folder, `${name}.yml`);
  writeFileSync(file, stringify({ rule_files: [`${name}.rules.yml`], ...rest }));
  return file;
}

function lastTime({ alert_rule_test, promql_expr_test }: Case): string {
  const times = [...alert_rule_test, ...promql_expr_test].map(({ eval_time }) => eval_time);
  return times.toSorted((one, other) => minutesOf(other) - minutesOf(one))[0] ?? "0m";
}

function minutesOf(time: string): number {
  const [, hours = "0", minutes = "0"] = /^(?:(\d+)h)?(?:(\d+)m)?$/.exec(time) ?? [];
  return 60 * Number(hours) + Number(minutes);
}
