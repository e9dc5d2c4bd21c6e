/** A text of a creative in the forms that the checks look at. */
export interface ScreenedText {
  /** As the catalogue has it. */
  readonly raw: string;
  /** Compatible forms made one (fullwidth, bold), invisible characters gone. */
  readonly plain: string;
  /** `plain` in small letters without accents, with one blank between words. */
  readonly folded: string;
}

export function screenedText(raw: string): ScreenedText {
  const isAscii = /^[\x20-\x7e]*$/.test(raw);
  const plain = isAscii ? raw : raw.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  return { raw, plain, folded: foldText(isAscii ? plain : withoutAccents(plain)) };
}

function withoutAccents(text: string): string {
  return text
    .normalize("NFD")
    .replace(/(?<=\p{Script=Latin}\p{M}{0,8})\p{M}/gu, "")
    .normalize("NFC");
}

function foldText(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\u2018\u2019\u02bc]/g, "'")
    .replace(/[\s_*"\u201c\u201d()[\]]+/g, " ")
    .trim();
}
