import { UnsupportedPolicy } from './json-value.ts'

/** `like`: literal characters and wildcards. Linear in the text for each wildcard, whatever the pattern. */
export function compilePattern(elements: readonly unknown[]): (text: string) => boolean {
  const parts: string[] = ['']
  for (const element of elements) {
    if (element === 'Wildcard') parts.push('')
    else if (typeof element === 'object' && element !== null && 'Literal' in element) parts[parts.length - 1] += String(element.Literal)
    else throw new UnsupportedPolicy('a pattern consists of literals and wildcards')
  }
  const [first = '', ...rest] = parts
  const last = rest.pop()
  if (last === undefined) return (text) => text === first
  return (text) => {
    if (!text.startsWith(first)) return false
    let at = first.length
    for (const part of rest) {
      const found = text.indexOf(part, at)
      if (found < 0) return false
      at = found + part.length
    }
    return text.length - last.length >= at && text.endsWith(last)
  }
}
