import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { type ContainerRuntimeClient, getContainerRuntimeClient, getReaper, ImageName } from "testcontainers";

/** The image of docker-compose.yml. */
export const REDIS_IMAGE = "redis:8-alpine";

const ASK_TIMEOUT_MS = 5000;
const PULL_TIMEOUT_MS = 45_000;
const NO_REAPER_VARIABLE = "TESTCONTAINERS_RYUK_DISABLED";
const HOST_LABEL = "adrelay.test-redis.host";
const PROCESS_LABEL = "adrelay.test-redis.process";

/** Whether an engine answers and has the image, or can fetch it. */
export async function canRunRedis(): Promise<boolean> {
  const image = ImageName.fromString(REDIS_IMAGE);
  try {
    const client = await within(ASK_TIMEOUT_MS, getContainerRuntimeClient());
    if (await within(ASK_TIMEOUT_MS, client.image.exists(image))) {
      return true;
    }
    // A pull that fails ends like any other: the image tells.
    await within(PULL_TIMEOUT_MS, client.image.pull(image));
    return await within(ASK_TIMEOUT_MS, client.image.exists(image));
  } catch {
    return false;
  }
}

let opening: Promise<ContainerRuntimeClient> | undefined;

/** The engine, with something that removes what a killed test process leaves behind. */
export function openEngine(): Promise<ContainerRuntimeClient> {
  opening ??= open();
  return opening;
}

/** Tells whose a container is. */
export function ownerLabels(): Record<string, string> {
  return { [HOST_LABEL]: hostname(), [PROCESS_LABEL]: String(process.pid) };
}

async function open(): Promise<ContainerRuntimeClient> {
  const client = await getContainerRuntimeClient();
  try {
    await getReaper(client);
  } catch {
    // Its image can't be had here: this process does without, and so do those that it starts.
    process.env[NO_REAPER_VARIABLE] = "true";
  }
  if (process.env[NO_REAPER_VARIABLE] === "true") {
    await removeOrphans(client);
  }
  return client;
}

/** Removes the containers of this host's test processes that have ended without doing so. */
async function removeOrphans({ container: { dockerode } }: ContainerRuntimeClient): Promise<void> {
  const ours = await dockerode.listContainers({
    all: true,
    filters: { label: [`${HOST_LABEL}=${hostname()}`] },
  });
  const orphans = ours.filter(({ Labels }) => !isAlive(Number(Labels[PROCESS_LABEL])));
  await Promise.allSettled(
    // Another test process may be at it too: whoever comes first removes it.
    orphans.map(({ Id }) => dockerode.getContainer(Id).remove({ force: true, v: true })),
  );
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    // EPERM: it runs, as somebody else.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  const overdue = wait(timeoutMs, undefined, { ref: false }).then(() => {
    throw new TypeError(`Docker did not answer within ${timeoutMs} ms`);
  });
  return Promise.race([work, overdue]);
}
