/** JSON that `JSON.parse` has accepted, seen as text: what parsing loses (order of members, digits of numbers) is kept. */
export interface JsonText {
  /** Without the spaces between tokens: one line. */
  readonly compact: string
  /** The compact texts of the members, where the whole is an object. */
  readonly members: ReadonlyMap<string, string>
  /** A name that one object has twice, wherever it is: readers disagree on which one counts. */
  readonly duplicate?: string
}

/** Only for text that has been parsed without an error: it is not checked again. */
export function readJsonText(text: string): JsonText {
  const parts: string[] = []
  const members = new Map<string, string>()
  const stack: Level[] = []
  let length = 0
  let duplicate: string | undefined
  let memberStart = 0
  let memberName: string | undefined

  const emit = (token: string): void => {
    parts.push(token)
    length += token.length
  }
  const endMember = (): void => {
    if (stack.length === 1 && memberName !== undefined) members.set(memberName, sliceOf(parts, memberStart))
    memberName = undefined
  }

  for (const [token] of text.matchAll(TOKEN)) {
    const level = stack.at(-1)
    if (token === '{' || token === '[') stack.push({ names: token === '{' ? new Set() : undefined, expectsName: token === '{' })
    else if (token === '}' || token === ']') {
      if (stack.length === 1) endMember()
      stack.pop()
    } else if (token === ',') {
      if (stack.length === 1) endMember()
      if (level?.names) level.expectsName = true
    } else if (token === ':') {
      emit(token)
      if (stack.length === 1) memberStart = parts.length
      continue
    } else if (level?.names && level.expectsName) {
      const name = JSON.parse(token) as string
      if (level.names.has(name)) duplicate ??= name
      level.names.add(name)
      level.expectsName = false
      if (stack.length === 1) memberName = name
    }
    emit(token)
  }
  return { compact: length === text.length ? text : parts.join(''), members, ...(duplicate !== undefined && { duplicate }) }
}

/** Strings, punctuation, and everything else (numbers, true, false, null). */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g

interface Level {
  /** Of an object. */
  readonly names: Set<string> | undefined
  expectsName: boolean
}

function sliceOf(parts: readonly string[], start: number): string {
  return parts.slice(start).join('')
}
