const WORD = /[\p{L}\p{N}]+/gu
const MARKS = /\p{M}+/gu
const MAX_WORD = 32

/** The words of a text as the index knows them: no case, no accents, no plural s; at most `max`, each of at most 32 units. */
export function wordsOf(text: string, max: number): string[] {
  const folded = text.toWellFormed().normalize('NFKD').replace(MARKS, '').toLowerCase()
  const words: string[] = []
  for (const [word] of folded.matchAll(WORD)) {
    if (words.length === max) break
    words.push(singular(word).slice(0, MAX_WORD).toWellFormed())
  }
  return words
}

/** `createIssue` as two words; `create_issue` is two anyway. */
export function splitCamelCase(text: string): string {
  return text.replace(/(\p{Ll}|\p{N})(?=\p{Lu})/gu, '$1 ')
}

/** The same cut on both sides, so it need not be good grammar. */
function singular(word: string): string {
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
}
