/** A part of a template: text that stands there, or an expression and what it may stand for. */
type Token = { readonly text: string } | { readonly wild: 'segment' | 'any' }

export interface UriTemplate {
  readonly prefix: string
  readonly suffix: string
  /** Undefined for a template that is too long to be matched. */
  readonly tokens: readonly Token[] | undefined
}

/** The work that may still be done for one lookup: characters looked at. */
export interface MatchBudget {
  left: number
}

const MAX_URI = 8_192
const MAX_TEMPLATE = 4_096
const MAX_TOKENS = 64

/**
 * A URI template (RFC 6570) for matching only: `{name}` stands for text without a slash, expressions with an operator or `*` for any text.
 * An expression that does not end stands for itself.
 */
export function parseUriTemplate(template: string): UriTemplate {
  const tokens: Token[] = []
  let at = 0
  if (template.length > MAX_TEMPLATE) return UNMATCHED
  for (const match of template.matchAll(/\{([+#./;?&]?)([^{}]*)\}/g)) {
    if (match.index > at) tokens.push({ text: template.slice(at, match.index) })
    const isPlain = match[1] === '' && !match[2]?.endsWith('*')
    tokens.push({ wild: isPlain ? 'segment' : 'any' })
    at = match.index + match[0].length
  }
  if (at < template.length) tokens.push({ text: template.slice(at) })
  if (tokens.length > MAX_TOKENS) return UNMATCHED
  return { prefix: textOf(tokens[0]), suffix: textOf(tokens.at(-1)), tokens }
}

const UNMATCHED: UriTemplate = { prefix: '', suffix: '', tokens: undefined }

function textOf(token: Token | undefined): string {
  return token !== undefined && 'text' in token ? token.text : ''
}

/**
 * In time proportional to the tokens times the length of the URI: all ways through the template are followed at once. A budget that is used
 * up matches nothing more.
 */
export function matchesTemplate({ prefix, suffix, tokens }: UriTemplate, uri: string, budget: MatchBudget = { left: Infinity }): boolean {
  if (tokens === undefined || uri.length > MAX_URI || !uri.startsWith(prefix) || !uri.endsWith(suffix)) return false
  let positions = new Uint8Array(uri.length + 1)
  positions[0] = 1
  for (const token of tokens) {
    budget.left -= uri.length + 1
    if (budget.left < 0) return false
    const next = new Uint8Array(uri.length + 1)
    const isAlive =
      'text' in token ? addText(next, { uri, from: positions, text: token.text }) : addWild(next, { uri, from: positions, token })
    if (!isAlive) return false
    positions = next
  }
  return positions[uri.length] === 1
}

interface Step {
  readonly uri: string
  readonly from: Uint8Array
}

/** Occurrences of the text are found from left to right, so that a text costs its length once. */
function addText(next: Uint8Array, { uri, from, text }: Step & { readonly text: string }): boolean {
  let isAlive = false
  for (let at = uri.indexOf(text); at !== -1; at = uri.indexOf(text, at + 1)) {
    if (from[at] !== 1) continue
    next[at + text.length] = 1
    isAlive = true
  }
  return isAlive
}

/** Every end that some start before it can reach. */
function addWild(next: Uint8Array, { uri, from, token }: Step & { readonly token: { readonly wild: 'segment' | 'any' } }): boolean {
  const stopsAtSlash = token.wild === 'segment'
  let isAlive = false
  let isOpen = false
  for (let at = 0; at <= uri.length; at++) {
    if (isOpen || (!stopsAtSlash && from[at] === 1)) {
      next[at] = 1
      isAlive = true
    }
    isOpen = (isOpen || from[at] === 1) && !(stopsAtSlash && uri[at] === '/')
  }
  return isAlive
}
