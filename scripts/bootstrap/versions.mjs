/**
 * Whether a version is `oldest` or newer. Pre-releases count as older than their release; what is no version
 * is not new enough.
 */
export function isAtLeast(version, oldest) {
  const have = parse(version);
  const want = parse(oldest);
  if (have === undefined || want === undefined) {
    return false;
  }
  for (const [place, number] of have.numbers.entries()) {
    if (number !== want.numbers[place]) {
      return number > want.numbers[place];
    }
  }
  return !have.isPreRelease || want.isPreRelease;
}

function parse(version) {
  const match = /^v?(\d+)\.(\d+)\.(\d+)(-\S+)?\s*$/.exec(version);
  return match === null
    ? undefined
    : { numbers: match.slice(1, 4).map(Number), isPreRelease: match[4] !== undefined };
}
