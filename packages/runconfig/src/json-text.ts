export type ParsedText =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly line: number; readonly column: number }

/** As JSON.parse, but says where a text is wrong and never quotes it: the parser's own messages do, and the text may hold secrets. */
export function parseJsonText(text: string): ParsedText {
  const body = text.startsWith('\ufeff') ? text.slice(1) : text
  try {
    return { ok: true, value: JSON.parse(body) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { ok: false, ...positionOf(body, errorOffset(body)) }
  }
}

function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split('\n')
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}

/** The token that may come next. */
type Expect = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end'

/** Where the first token stands that cannot stand there, or where it breaks off. Only for texts that JSON.parse has refused. */
function errorOffset(text: string): number {
  const open: ('{' | '[')[] = []
  let expect: Expect = 'value'
  let at = 0
  for (;;) {
    while (at < text.length && ' \t\n\r'.includes(text.charAt(at))) at++
    const token = tokenAt(text, at)
    if (token.mark === undefined) return token.end
    const next = step(expect, { open, mark: token.mark })
    if (next === undefined) return at
    expect = next
    at = token.end
  }
}

const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Without a mark there is no token: `end` is then where it goes wrong. */
function tokenAt(text: string, at: number): { mark?: string; end: number } {
  const first = text.charAt(at)
  if (first === '"') return stringAt(text, at)
  if (first !== '' && '[]{}:,'.includes(first)) return { mark: first, end: at + 1 }
  LITERAL.lastIndex = at
  return LITERAL.test(text) ? { mark: 'literal', end: LITERAL.lastIndex } : { end: at }
}

function stringAt(text: string, start: number): { mark?: string; end: number } {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') return { mark: 'string', end: at + 1 }
    if (char < ' ') return { end: at }
    if (char !== '\\') continue
    if (!/^(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.test(text.slice(at + 1, at + 6))) return { end: at }
    at++
  }
  return { end: text.length }
}

function step(expect: Expect, { open, mark }: { open: ('{' | '[')[]; mark: string }): Expect | undefined {
  const isValue = expect === 'value' || expect === 'value-or-end'
  if (mark === 'string' && (expect === 'key' || expect === 'key-or-end')) return 'colon'
  if ((mark === 'string' || mark === 'literal') && isValue) return 'comma-or-end'
  if (mark === ':' && expect === 'colon') return 'value'
  if ((mark === '{' || mark === '[') && isValue) {
    open.push(mark)
    return mark === '{' ? 'key-or-end' : 'value-or-end'
  }
  const inside = open.at(-1)
  if (mark === ',' && expect === 'comma-or-end' && inside !== undefined) return inside === '{' ? 'key' : 'value'
  const ends = expect === 'comma-or-end' || (mark === '}' && expect === 'key-or-end') || (mark === ']' && expect === 'value-or-end')
  if (!ends || (mark === '}' ? inside !== '{' : mark !== ']' || inside !== '[')) return undefined
  open.pop()
  return 'comma-or-end'
}
