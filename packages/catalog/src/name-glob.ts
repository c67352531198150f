/** A pattern over a whole name: `*` and `?` cross `/` and `.`; `[a-z]`, `[!a]`, `{one,two}` and `\x` as usual. */
export interface NameGlob {
  matches(name: string): boolean
}

export type GlobResult = { readonly ok: true; readonly glob: NameGlob } | { readonly ok: false; readonly problem: string }

const MAX_PATTERN = 1_024
const MAX_NESTING = 8

/**
 * Compiles to a state machine whose states are walked together, so a match costs at most name × pattern steps: there is no pattern
 * that makes it try again and again.
 */
export function compileGlob(pattern: string): GlobResult {
  if (pattern.length > MAX_PATTERN) return { ok: false, problem: `is longer than ${MAX_PATTERN} characters` }
  const parser = createParser(Array.from(pattern))
  const problem = parser.sequence(0, false)
  if (problem !== undefined) return { ok: false, problem }
  return { ok: true, glob: { matches: (name) => run(parser.states, name) } }
}

/** `any` stays and moves on; `take` eats one code point; `fork` goes to several places without eating. */
type State =
  | { readonly kind: 'any' }
  | { readonly kind: 'take'; readonly takes: (point: string) => boolean }
  | { readonly kind: 'fork'; readonly targets: number[] }

function createParser(points: readonly string[]) {
  const states: State[] = []
  let at = 0

  /** Reads until the end, or inside braces until `,` or `}`. Returns a problem or nothing. */
  function sequence(nesting: number, inBraces: boolean): string | undefined {
    for (let point = points[at]; point !== undefined; point = points[at]) {
      if (inBraces && (point === ',' || point === '}')) return undefined
      at += 1
      const problem = one(point, nesting)
      if (problem !== undefined) return problem
    }
    return inBraces ? "has a '{' without '}'" : undefined
  }

  function one(point: string, nesting: number): string | undefined {
    if (point === '*') states.push({ kind: 'any' })
    else if (point === '?') states.push({ kind: 'take', takes: () => true })
    else if (point === '[') return set()
    else if (point === '{') return braces(nesting + 1)
    else if (point === '}') return "has a '}' without '{'"
    else if (point === '\\') {
      const escaped = points[at]
      if (escaped === undefined) return "ends with '\\'"
      at += 1
      states.push({ kind: 'take', takes: (candidate) => candidate === escaped })
    } else states.push({ kind: 'take', takes: (candidate) => candidate === point })
    return undefined
  }

  function set(): string | undefined {
    const negated = points[at] === '!' || points[at] === '^'
    if (negated) at += 1
    const ranges: [string, string][] = []
    for (;;) {
      const low = setMember()
      if (low === undefined) return "has a '[' without ']'"
      if (low === ']') break
      const from = unescaped(low)
      if (points[at] === '-' && points[at + 1] !== undefined && points[at + 1] !== ']') {
        at += 1
        const high = unescaped(setMember() ?? '')
        if (codeOf(high) < codeOf(from)) return `has the empty range ${from}-${high}`
        ranges.push([from, high])
      } else ranges.push([from, from])
    }
    if (ranges.length === 0) return "has an empty '[]'"
    const inside = (point: string): boolean => ranges.some(([from, to]) => codeOf(from) <= codeOf(point) && codeOf(point) <= codeOf(to))
    states.push({ kind: 'take', takes: (point) => inside(point) !== negated })
    return undefined
  }

  /** One member of a set, `]` for its end; an escaped one keeps its backslash so that `\]` is not the end. */
  function setMember(): string | undefined {
    const point = points[at]
    at += 1
    if (point !== '\\') return point
    const escaped = points[at]
    at += 1
    return escaped === undefined ? undefined : `\\${escaped}`
  }

  function braces(nesting: number): string | undefined {
    if (nesting > MAX_NESTING) return `has braces nested deeper than ${MAX_NESTING}`
    const starts: number[] = []
    states.push({ kind: 'fork', targets: starts })
    const exits: number[][] = []
    for (;;) {
      starts.push(states.length)
      const problem = sequence(nesting, true)
      if (problem !== undefined) return problem
      const exit: number[] = []
      exits.push(exit)
      states.push({ kind: 'fork', targets: exit })
      at += 1
      if (points[at - 1] === '}') break
    }
    for (const exit of exits) exit.push(states.length)
    return undefined
  }

  return { states, sequence }
}

function run(states: readonly State[], name: string): boolean {
  let current = new Set<number>()
  enter(states, 0, current)
  for (const point of name) {
    const next = new Set<number>()
    for (const index of current) {
      const state = states[index]
      if (state?.kind === 'any') enter(states, index, next)
      else if (state?.kind === 'take' && state.takes(point)) enter(states, index + 1, next)
    }
    if (next.size === 0) return false
    current = next
  }
  return current.has(states.length)
}

/** Adds a state and all that is reached from it without eating. */
function enter(states: readonly State[], start: number, into: Set<number>): void {
  const stack = [start]
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    if (into.has(index)) continue
    into.add(index)
    const state = states[index]
    if (state?.kind === 'any') stack.push(index + 1)
    else if (state?.kind === 'fork') stack.push(...state.targets)
  }
}

function unescaped(point: string): string {
  return point.startsWith('\\') ? point.slice(1) : point
}

function codeOf(point: string): number {
  return point.codePointAt(0) ?? 0
}
