/** Why a pattern is refused, in the words of Go's regexp package. */
export class GoRegexpError extends Error {
  constructor(what: string, where: string) {
    super(`error parsing regexp: ${what}: \`${where}\``)
    this.name = 'GoRegexpError'
  }
}

const MAX_REPEAT = 1000
const cache = new Map<string, RegExp>()
const CACHE_SIZE = 2000

/**
 * Patterns in CRDs are RE2 (Go). Translates one to a JavaScript RegExp of the same meaning and refuses what RE2 has
 * not: look-around, back references, repeats over 1000. Throws GoRegexpError. The result can still backtrack badly:
 * run it inside `boundedTime`.
 */
export function goRegexp(pattern: string): RegExp {
  const known = cache.get(pattern)
  if (known) return known
  const compiled = compile(pattern)
  if (cache.size >= CACHE_SIZE) cache.clear()
  cache.set(pattern, compiled)
  return compiled
}

function compile(pattern: string): RegExp {
  const { source, flags } = translate(pattern)
  try {
    return new RegExp(source, `u${flags}`)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^.*: /, '').toLowerCase() : 'syntax'
    throw new GoRegexpError(REASONS[reason] ?? reason, pattern)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  'unterminated group': 'missing closing )',
  'unmatched )': 'unexpected )',
  "unmatched ')'": 'unexpected )',
  'nothing to repeat': 'missing argument to repetition operator',
  'range out of order in character class': 'invalid character class range',
}

interface Cursor {
  readonly text: string
  at: number
  dotAll: boolean
  /** Of the groups that are open, the outermost first. */
  readonly levels: Level[]
}

/** `(?i)` holds to the end of its group, across alternatives; JavaScript has only `(?i:…)`, which each alternative opens again. */
interface Level {
  readonly opened: string[]
  readonly dotAll: boolean
}

function translate(pattern: string): { source: string; flags: string } {
  const lead = /^\(\?([imsU]+)\)/.exec(pattern)
  const letters = lead?.[1] ?? ''
  if (letters.includes('U')) throw new GoRegexpError('invalid or unsupported Perl syntax', lead?.[0] ?? '')
  const cursor: Cursor = {
    text: pattern,
    at: lead?.[0].length ?? 0,
    dotAll: letters.includes('s'),
    levels: [{ opened: [], dotAll: false }],
  }
  let source = ''
  while (cursor.at < pattern.length) source += token(cursor)
  source += closed(cursor)
  return { source, flags: [...'im'].filter((letter) => letters.includes(letter)).join('') }
}

function token(cursor: Cursor): string {
  const { text, at } = cursor
  const char = String.fromCodePoint(text.codePointAt(at) ?? 0)
  if (char === '\\') return escapeSequence(cursor, 'outside')
  if (char === '[') return charClass(cursor)
  if (char === '(') return group(cursor)
  if (char === '{') return repeat(cursor)
  if (char === ')') return endOfGroup(cursor)
  if (char === '|') return take(cursor, 1, `${closed(cursor)}|${openedHere(cursor).join('')}`)
  cursor.at += char.length
  if (char === '.') return cursor.dotAll ? '[^]' : '[^\\n]'
  if (char === ']' || char === '}') return `\\${char}`
  if ('*+?'.includes(char) && '*+'.includes(text[cursor.at] ?? ' ')) {
    throw new GoRegexpError('invalid nested repetition operator', `${char}${text[cursor.at]}`)
  }
  return char
}

function group(cursor: Cursor): string {
  const rest = cursor.text.slice(cursor.at)
  const named = /^\(\?P?<([A-Za-z_]\w*)>/.exec(rest)
  if (named) return openGroup(cursor, named[0].length, `(?<${named[1]}>`)
  if (rest.startsWith('(?:')) return openGroup(cursor, 3, '(?:')
  const flagged = /^\(\?([ims]*)(?:-([ims]+))?([:)])/.exec(rest)
  if (flagged && flagged[0] !== '(?)' && flagged[0] !== '(?:') return flagGroup(cursor, flagged)
  if (rest.startsWith('(?')) throw new GoRegexpError('invalid or unsupported Perl syntax', /^\(\?(?:<[=!]?|.)?/.exec(rest)?.[0] ?? '(?')
  return openGroup(cursor, 1, '(')
}

function openGroup(cursor: Cursor, length: number, source: string): string {
  cursor.levels.push({ opened: [], dotAll: cursor.dotAll })
  return take(cursor, length, source)
}

/** `(?i-s:` opens a group, `(?i-s)` changes the one that it stands in. */
function flagGroup(cursor: Cursor, [all, on = '', off = '', end]: readonly string[]): string {
  const group = `(?${on.replaceAll('s', '')}${off.replaceAll('s', '') === '' ? '' : `-${off.replaceAll('s', '')}`}:`
  const dotAll = on.includes('s') || (cursor.dotAll && !off.includes('s'))
  if (end === ':') openGroup(cursor, 0, '')
  else if (group !== '(?:') openedHere(cursor).push(group)
  cursor.dotAll = dotAll
  return take(cursor, all?.length ?? 0, end === ':' || group !== '(?:' ? group : '')
}

function endOfGroup(cursor: Cursor): string {
  const ends = closed(cursor)
  // One too many is left to the compiler of JavaScript, which refuses it.
  const level = cursor.levels.length > 1 ? cursor.levels.pop() : undefined
  if (level) cursor.dotAll = level.dotAll
  return take(cursor, 1, `${ends})`)
}

function openedHere({ levels }: Cursor): string[] {
  return levels.at(-1)?.opened ?? []
}

function closed(cursor: Cursor): string {
  return ')'.repeat(openedHere(cursor).length)
}

/** A brace that is no repeat is a plain character in RE2. */
function repeat(cursor: Cursor): string {
  const match = /^\{(\d+)(?:(,)(\d*))?\}/.exec(cursor.text.slice(cursor.at))
  if (!match) return take(cursor, 1, '\\{')
  const [all, from, , to] = match
  if (Number(from) > MAX_REPEAT || Number(to || 0) > MAX_REPEAT) throw new GoRegexpError('invalid repeat count', all)
  return take(cursor, all.length, all)
}

function charClass(cursor: Cursor): string {
  const start = cursor.at
  cursor.at += 1
  let out = '['
  if (cursor.text[cursor.at] === '^') out += take(cursor, 1, '^')
  let first = true
  while (first || cursor.text[cursor.at] !== ']') {
    if (cursor.at >= cursor.text.length) throw new GoRegexpError('missing closing ]', cursor.text.slice(start))
    out += classMember(cursor)
    first = false
  }
  return `${out}${take(cursor, 1, ']')}`
}

function classMember(cursor: Cursor): string {
  const posix = /^\[:(\^?)(\w+):\]/.exec(cursor.text.slice(cursor.at))
  if (posix) {
    const members = POSIX[posix[2] ?? '']
    if (!members || posix[1]) throw new GoRegexpError('invalid character class range', posix[0])
    return take(cursor, posix[0].length, members)
  }
  const char = String.fromCodePoint(cursor.text.codePointAt(cursor.at) ?? 0)
  if (char === '\\') return escapeSequence(cursor, 'class')
  cursor.at += char.length
  return '[]'.includes(char) ? `\\${char}` : char
}

const POSIX: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`\\{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '\\w',
  xdigit: '0-9A-Fa-f',
}

function escapeSequence(cursor: Cursor, where: 'outside' | 'class'): string {
  const rest = cursor.text.slice(cursor.at)
  const quoted = /^\\Q([\s\S]*?)(?:\\E|$)/.exec(rest)
  if (quoted) return take(cursor, quoted[0].length, (quoted[1] ?? '').replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  const hex = /^\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})/.exec(rest)
  if (hex) return take(cursor, hex[0].length, `\\u{${hex[1] ?? hex[2]}}`)
  const property = /^\\([pP])(?:\{(\^?)(\w+)\}|(\w))/.exec(rest)
  if (property) return take(cursor, property[0].length, unicodeProperty(property))
  const octal = /^\\0[0-7]{0,2}/.exec(rest)
  if (octal) return take(cursor, octal[0].length, `\\u{${Number.parseInt(octal[0].slice(1), 8).toString(16)}}`)
  const char = String.fromCodePoint(rest.codePointAt(1) ?? 0)
  if (rest.length < 2) throw new GoRegexpError('trailing backslash at end of expression', '')
  cursor.at += 1 + char.length
  if (char === 's') return where === 'class' ? '\\t\\n\\f\\r ' : '[\\t\\n\\f\\r ]'
  if (char === 'S' && where === 'outside') return '[^\\t\\n\\f\\r ]'
  if ('dDwWSntrfv'.includes(char)) return `\\${char}`
  if (char === 'a') return '\\x07'
  if (where === 'outside' && 'bB'.includes(char)) return `\\${char}`
  if (where === 'outside' && char === 'A') return '(?<![^])'
  if (where === 'outside' && char === 'z') return '(?![^])'
  if (/[\w]/.test(char) && char !== '_') throw new GoRegexpError('invalid escape sequence', `\\${char}`)
  return /[\\^$.*+?()[\]{}|/-]/.test(char) && (where === 'class' || char !== '-') ? `\\${char}` : char
}

function unicodeProperty([, letter, negated, long, short]: RegExpExecArray): string {
  const name = long ?? short ?? ''
  const script = name.length > 2 ? `Script=${name}` : name
  return `\\${negated ? (letter === 'p' ? 'P' : 'p') : letter}{${script}}`
}

function take(cursor: Cursor, length: number, result: string): string {
  cursor.at += length
  return result
}
