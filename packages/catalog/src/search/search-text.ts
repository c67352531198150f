const WORD = /[\p{L}\p{N}]+/gu
// Nearly all text is ASCII, and building an index is mostly this.
const PLAIN = /^[\t-~]*$/
const PLAIN_WORD = /[a-z0-9]+/g
const MARKS = /\p{M}+/gu
const MAX_WORD = 32

/** The words of a text as the index knows them: no case, no accents, no plural s; at most `max`, each of at most 32 units. */
export function wordsOf(text: string, max: number): string[] {
  const found = PLAIN.test(text) ? text.toLowerCase().match(PLAIN_WORD) : foldAccents(text).match(WORD)
  return (found ?? []).slice(0, max).map((word) => singular(word).slice(0, MAX_WORD).toWellFormed())
}

function foldAccents(text: string): string {
  return text.toWellFormed().normalize('NFKD').replace(MARKS, '').toLowerCase()
}

/** `createIssue` as two words; `create_issue` is two anyway. */
export function splitCamelCase(text: string): string {
  return text.replace(/(\p{Ll}|\p{N})(?=\p{Lu})/gu, '$1 ')
}

/** The same cut on both sides, so it need not be good grammar. */
function singular(word: string): string {
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
}
