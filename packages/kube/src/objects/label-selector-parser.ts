import type { LabelRequirement } from './label-selector.ts'

/** The grammar of a `labelSelector` query parameter. Keys and values are not checked here. */
export function parseSelectorText(text: string): LabelRequirement[] {
  const tokens = tokenize(text)
  const requirements: LabelRequirement[] = []
  let at = 0
  const peek = () => tokens[at] ?? ''
  const fail = (expected: string) => new RangeError(`label selector "${text}": found "${peek()}", expected ${expected}`)
  const atEnd = () => at >= tokens.length || peek() === ','

  const word = (what: string): string => {
    const token = peek()
    if (token === '' || isSymbol(token)) throw fail(what)
    at++
    return token
  }

  /** `(a,b)`. A missing word stands for the empty value, as on the server: `()` is `("")`. */
  const valueList = (): string[] => {
    if (peek() !== '(') throw fail('"("')
    at++
    const values = new Set<string>()
    for (;;) {
      values.add(peek() === ',' || peek() === ')' ? '' : word('a value'))
      if (peek() === ')') break
      if (peek() !== ',') throw fail('"," or ")"')
      at++
    }
    at++
    return [...values]
  }

  const requirement = (): LabelRequirement => {
    if (peek() === '!') {
      at++
      const key = word('a key')
      if (!atEnd()) throw fail('"," or the end')
      return { key, operator: 'DoesNotExist', values: [] }
    }
    const key = word('a key')
    if (atEnd()) return { key, operator: 'Exists', values: [] }
    const operator = OPERATORS[peek()]
    if (operator === undefined) throw fail('an operator')
    const isSet = peek() === 'in' || peek() === 'notin'
    at++
    if (isSet) return { key, operator, values: valueList() }
    return { key, operator, values: [atEnd() ? '' : word('a value')] }
  }

  if (tokens.length === 0) return requirements
  for (;;) {
    requirements.push(requirement())
    if (at >= tokens.length) return requirements
    if (peek() !== ',') throw fail('"," or the end')
    at++
  }
}

const OPERATORS: Readonly<Record<string, LabelRequirement['operator']>> = {
  '=': 'In',
  '==': 'In',
  in: 'In',
  '!=': 'NotIn',
  notin: 'NotIn',
  '>': 'Gt',
  '<': 'Lt',
}

/** Words and symbols, longest symbol first; `in` and `notin` are words that only their place makes operators. */
function tokenize(text: string): string[] {
  return text.match(/==|!=|[=!(),<>]|[^=!(),<>\s]+/g) ?? []
}

function isSymbol(token: string): boolean {
  return /^[=!(),<>]/.test(token)
}
