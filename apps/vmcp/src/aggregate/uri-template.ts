/** A part of a template: text that stands there, or an expression and what it may stand for. */
type Token = { readonly text: string } | { readonly wild: 'segment' | 'any' }

export interface UriTemplate {
  readonly prefix: string
  readonly tokens: readonly Token[]
}

const MAX_URI = 8_192

/**
 * A URI template (RFC 6570) for matching only: `{name}` stands for text without a slash, expressions with an operator or `*` for any text.
 * An expression that does not end stands for itself.
 */
export function parseUriTemplate(template: string): UriTemplate {
  const tokens: Token[] = []
  let at = 0
  for (const match of template.matchAll(/\{([+#./;?&]?)([^{}]*)\}/g)) {
    if (match.index > at) tokens.push({ text: template.slice(at, match.index) })
    const isPlain = match[1] === '' && !match[2]?.endsWith('*')
    tokens.push({ wild: isPlain ? 'segment' : 'any' })
    at = match.index + match[0].length
  }
  if (at < template.length) tokens.push({ text: template.slice(at) })
  const [first] = tokens
  return { prefix: first !== undefined && 'text' in first ? first.text : '', tokens }
}

/** In time proportional to the lengths of both: all ways through the template are followed at once. */
export function matchesTemplate({ prefix, tokens }: UriTemplate, uri: string): boolean {
  if (uri.length > MAX_URI || !uri.startsWith(prefix)) return false
  let positions = new Set([0])
  for (const token of tokens) {
    const next = new Set<number>()
    if ('text' in token) for (const at of positions) addText(next, { uri, at, text: token.text })
    else addWild(next, { uri, from: positions, stopsAtSlash: token.wild === 'segment' })
    if (next.size === 0) return false
    positions = next
  }
  return positions.has(uri.length)
}

function addText(next: Set<number>, { uri, at, text }: { uri: string; at: number; text: string }): void {
  if (uri.startsWith(text, at)) next.add(at + text.length)
}

/** Every end that some start can reach; a start inside a stretch that was walked already adds nothing. */
function addWild(next: Set<number>, { uri, from, stopsAtSlash }: { uri: string; from: ReadonlySet<number>; stopsAtSlash: boolean }): void {
  for (const start of from) {
    if (!stopsAtSlash) next.add(start)
    for (let at = start; at < uri.length; at++) {
      if (stopsAtSlash && uri[at] === '/') break
      if (next.has(at + 1)) break
      next.add(at + 1)
    }
  }
}
