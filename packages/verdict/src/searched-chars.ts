/** Only this much of a text is searched: a hostile one takes a second for a megabyte. Answers are rarely as long. */
export const SEARCHED_CHARS_MAX = 65_536;
