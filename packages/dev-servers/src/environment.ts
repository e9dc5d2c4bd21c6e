/** The environment variables of this package. No other file of it reads or changes the environment. */

/** How the Redis of tests runs: `docker` or `local`. */
export const TEST_REDIS_VARIABLE = "ADRELAY_TEST_REDIS";
/** Allows only one way to find a Redis server: path, embedded, docker, apt or oldest. */
export const REDIS_SERVER_VARIABLE = "ADRELAY_REDIS_SERVER";
/** The value `path` allows only a Prometheus on PATH, so that one run tries the installation only once. */
export const PROMETHEUS_VARIABLE = "ADRELAY_PROMETHEUS";
/** The value `true` switches testcontainers' reaper off. */
export const NO_REAPER_VARIABLE = "TESTCONTAINERS_RYUK_DISABLED";
/** Vitest gives each of its parallel workers a number, from 1 on. */
export const TEST_WORKER_VARIABLE = "VITEST_POOL_ID";

/** The variables of this process. Its child processes inherit them, changes included. */
export const environment: NodeJS.ProcessEnv = process.env;
