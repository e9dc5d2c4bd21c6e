/** For a worker that puts its jobs off or lets them fail. */
export function finishesNone() {
  return () => Promise.reject(new TypeError("a job was finished that was not to be"));
}
