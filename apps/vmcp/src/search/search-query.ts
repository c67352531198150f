import { wordsOf } from '@thv/catalog/search/search-text'

/** Words of requests that say nothing about a tool. */
const COMMON: ReadonlySet<string> = new Set(
  wordsOf(
    'a about an and any are as at be by can do does for from get give have help how i in into is it its let like me my need of on or our please some that the their them then there these this those to tool tools up use using want wants we what when which will with would you your',
    200,
  ),
)

/** The index reads so many words of a query. */
const MAX_WORDS = 12
const MAX_TEXT = 4_096
const ENDINGS = /(ing|ed|ion|ions)$/
const MIN_STEM = 4

/** The words of a request for a tool, keywords first. The index finds words by their beginnings, so endings of verbs are left out. Pure. */
export function searchQuery(description: string, keywords: readonly string[]): string {
  const words = [...keywords, description].flatMap((text) => wordsOf(text.slice(0, MAX_TEXT), MAX_TEXT))
  const telling = words.filter((word) => !COMMON.has(word))
  return [...new Set((telling.length > 0 ? telling : words).map(stem))].slice(0, MAX_WORDS).join(' ')
}

function stem(word: string): string {
  const cut = word.replace(ENDINGS, '')
  return cut.length < MIN_STEM ? word : cut
}
