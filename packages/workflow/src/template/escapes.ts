/** Text with what HTML reads specially as entities. */
export function htmlText(text: string): string {
  return text.replace(/[\0"'&<>]/g, (character) => HTML[character] ?? character)
}

const HTML: Readonly<Record<string, string>> = { '\0': '\uFFFD', '"': '&#34;', "'": '&#39;', '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Text for a JavaScript string literal. */
export function jsText(text: string): string {
  return text.replace(/[\\'"<>&=]|[^\P{C}]|[^\P{Z}]/gu, (character) => {
    const simple = JS[character]
    if (simple !== undefined) return simple
    if (character === ' ') return character
    const hex = (character.codePointAt(0) ?? 0).toString(16).toUpperCase()
    return `\\u${hex.padStart(4, '0')}`
  })
}

const JS: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  "'": "\\'",
  '"': '\\"',
  '<': '\\u003C',
  '>': '\\u003E',
  '&': '\\u0026',
  '=': '\\u003D',
}

/** Text for the query of a URL; a space becomes `+`. */
export function urlQueryText(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')
}

/** A quoted string of Go's syntax. */
export function quoted(text: string, quote: '"' | "'", asciiOnly: boolean): string {
  return `${quote}${text.replace(/["'\\]|[^ -~]/gu, (character) => quotedCharacter(character, quote, asciiOnly))}${quote}`
}

const SHORT: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
}

function quotedCharacter(character: string, quote: string, asciiOnly: boolean): string {
  const point = character.codePointAt(0) ?? 0
  if (character === quote) return `\\${quote}`
  const short = SHORT[character]
  if (short) return short
  if (isPrintable(character) && (!asciiOnly || point < 0x80)) return character
  if (point < 0x20 || point === 0x7f) return `\\x${point.toString(16).padStart(2, '0')}`
  if (point >= 0xd800 && point <= 0xdfff) return asciiOnly ? '\\ufffd' : '\uFFFD'
  return point < 0x10000 ? `\\u${point.toString(16).padStart(4, '0')}` : `\\U${point.toString(16).padStart(8, '0')}`
}

/** Letters, marks, numbers, punctuation, symbols and the ASCII space. */
export function isPrintable(character: string): boolean {
  return character === ' ' || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(character)
}
