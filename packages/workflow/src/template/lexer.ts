import { TemplateError } from './template-error.ts'

export type TokenKind =
  | 'text'
  | 'open'
  | 'close'
  | 'space'
  | 'word'
  | 'dot'
  | 'field'
  | 'variable'
  | 'number'
  | 'rune'
  | 'string'
  | 'raw'
  | 'declare'
  | 'assign'
  | 'pipe'
  | 'comma'
  | 'leftParen'
  | 'rightParen'
  | 'end'

export interface Token {
  readonly kind: TokenKind
  readonly text: string
  readonly at: number
}

/** Splits a template into tokens by the lexical rules of Go's text/template. Spaces inside of actions are tokens: they separate operands. */
export function tokens(source: string): Token[] {
  const found: Token[] = []
  let position = 0
  let trimsNext = false
  while (position < source.length) {
    const open = source.indexOf('{{', position)
    const end = open < 0 ? source.length : open
    const trimsBefore = open >= 0 && LEFT_TRIM.test(source.slice(open + 2, open + 4))
    pushText(position, end, trimsBefore)
    if (open < 0) break
    position = open + 2 + (trimsBefore ? 1 : 0)
    const afterMarker = trimsBefore ? position + 1 : position
    if (source.startsWith('/*', afterMarker)) position = comment(afterMarker)
    else position = action(open, position)
  }
  found.push({ kind: 'end', text: '', at: source.length })
  return found

  function pushText(from: number, to: number, trimsEnd: boolean): void {
    let text = source.slice(from, to)
    let at = from
    if (trimsNext) {
      const kept = text.replace(/^[ \t\r\n]+/, '')
      at += text.length - kept.length
      text = kept
    }
    trimsNext = false
    if (trimsEnd) text = withoutTrailingSpace(text)
    if (text !== '') found.push({ kind: 'text', text, at })
  }

  function comment(start: number): number {
    const end = source.indexOf('*/', start + 2)
    if (end < 0) throw fault('the comment is not closed', start)
    const close = closing(end + 2)
    if (!close) throw fault('a comment must end directly before }}', end)
    trimsNext = close.trims
    return close.next
  }

  function action(open: number, start: number): number {
    found.push({ kind: 'open', text: '{{', at: open })
    let at = start
    let depth = 0
    for (;;) {
      const close = closing(at)
      if (close) {
        if (depth > 0) throw fault('a parenthesis is not closed', at)
        found.push({ kind: 'close', text: '}}', at })
        trimsNext = close.trims
        return close.next
      }
      if (at >= source.length) throw fault('the action is not closed: }} is missing', open)
      const token = insideAction(source, at)
      if (token.kind === 'leftParen') depth++
      if (token.kind === 'rightParen' && --depth < 0) throw fault('unexpected right parenthesis', at)
      found.push(token)
      at += token.text.length
    }
  }

  /** `}}`, or ` -}}`, which takes away the space that follows it. */
  function closing(at: number): { next: number; trims: boolean } | undefined {
    if (source.startsWith('}}', at)) return { next: at + 2, trims: false }
    if (!SPACE.test(source[at] ?? '')) return undefined
    return source.startsWith('-}}', at + 1) ? { next: at + 4, trims: true } : undefined
  }
}

function withoutTrailingSpace(text: string): string {
  let end = text.length
  while (end > 0 && SPACE.test(text[end - 1] ?? '')) end--
  return text.slice(0, end)
}

const LEFT_TRIM = /^-[ \t\r\n]/
const SPACE = /^[ \t\r\n]$/
const WORD = /[\p{L}\p{Nd}_]+/uy
const QUOTED = /"(?:\\.|[^"\\\n])*"/uy
const RUNE = /'(?:\\.|[^'\\\n])*'/uy
const RAW = /`[^`]*`/y
/* The shapes of a Go number; what they mean is settled by `number-literal.ts`. */
const NUMBER =
  /[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*|0[bB][01_]*|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?/y

const SIGNS: Readonly<Record<string, TokenKind>> = { '=': 'assign', '|': 'pipe', ',': 'comma', '(': 'leftParen', ')': 'rightParen' }

function insideAction(source: string, at: number): Token {
  const first = source[at] ?? ''
  if (SPACE.test(first)) return spaces(source, at)
  if (first === ':') {
    if (source[at + 1] !== '=') throw fault('expected :=', at)
    return { kind: 'declare', text: ':=', at }
  }
  const sign = SIGNS[first]
  if (sign) return { kind: sign, text: first, at }
  if (first === '"') return whole('string', QUOTED, 'the string is not closed')
  if (first === "'") return whole('rune', RUNE, 'the character constant is not closed')
  if (first === '`') return whole('raw', RAW, 'the raw string is not closed')
  if (first === '$' || (first === '.' && !/[0-9]/.test(source[at + 1] ?? ''))) return fieldOrVariable(source, at)
  if (/[.+\-0-9]/.test(first)) {
    const token = whole('number', NUMBER, 'bad number')
    if (match(WORD, source, at + token.text.length) !== '' || token.text === '+' || token.text === '-') {
      throw fault(`bad number ${JSON.stringify(token.text + match(WORD, source, at + token.text.length))}`, at)
    }
    return token
  }
  const word = match(WORD, source, at)
  if (word === '') throw fault(`unexpected character ${JSON.stringify(String.fromCodePoint(source.codePointAt(at) ?? 0))}`, at)
  demandTerminator(source, at + word.length)
  return { kind: 'word', text: word, at }

  function whole(kind: TokenKind, pattern: RegExp, problem: string): Token {
    const text = match(pattern, source, at)
    if (text === '') throw fault(problem, at)
    return { kind, text, at }
  }
}

/** A run of spaces; the last one is left if it begins ` -}}`. */
function spaces(source: string, at: number): Token {
  let end = at
  while (SPACE.test(source[end] ?? '')) end++
  if (source.startsWith('-}}', end)) end--
  return { kind: 'space', text: source.slice(at, end), at }
}

function fieldOrVariable(source: string, at: number): Token {
  const isVariable = source[at] === '$'
  const name = match(WORD, source, at + 1)
  demandTerminator(source, at + 1 + name.length)
  return { kind: isVariable ? 'variable' : name === '' ? 'dot' : 'field', text: source.slice(at, at + 1 + name.length), at }
}

function demandTerminator(source: string, at: number): void {
  const next = source[at]
  if (next === undefined || SPACE.test(next) || '.,|:)('.includes(next) || source.startsWith('}}', at)) return
  const hint = next === '-' ? ': write (index .steps "NAME") for a name with a hyphen' : ''
  throw fault(`unexpected character ${JSON.stringify(String.fromCodePoint(source.codePointAt(at) ?? 0))} in a name${hint}`, at)
}

function match(pattern: RegExp, source: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0] ?? ''
}

function fault(message: string, at: number): TemplateError {
  return new TemplateError('syntax', message, at)
}
