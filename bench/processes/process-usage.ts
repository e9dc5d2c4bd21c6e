import { readFileSync } from "node:fs";

/** Processes by what they are, each with its pid. */
export type Pids = Readonly<Record<string, number>>;

/** CPU time that each used, user and system. */
export type CpuTimes = Readonly<Record<string, number>>;

/** Linux counts CPU time in hundredths of a second for programs, whatever its clock does. */
const MS_PER_TICK = 10;
const USER_TIME_AT = 11;
const SYSTEM_TIME_AT = 12;
const BYTES_PER_KB = 1024;

/** CPU time so far, in ms, from /proc/<pid>/stat. */
export function cpuTimesOf(pids: Pids): CpuTimes {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuMsOf(pid)]));
}

/** What each used between two looks. */
export function cpuBetween(before: CpuTimes, after: CpuTimes): CpuTimes {
  return Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

/** Memory that a process has now, resident. */
export function rssBytesOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * BYTES_PER_KB;
}

function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is a name in parentheses, which may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[USER_TIME_AT]) + Number(fields[SYSTEM_TIME_AT])) * MS_PER_TICK;
}
