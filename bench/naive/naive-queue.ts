/** The queue between the naive server and the bare worker. */
export const NAIVE_QUEUE = "acknowledgments";
