import type { DocumentProblem } from './catalog-entry.ts'

/** Collects what is wrong, all of it up to a bound, in the order of the checks. */
export interface Problems {
  add(pointer: string, message: string): void
  readonly list: readonly DocumentProblem[]
}

const MAX_PROBLEMS = 100

export function createProblems(limit: number = MAX_PROBLEMS): Problems {
  const list: DocumentProblem[] = []
  return {
    list,
    add(pointer, message) {
      if (list.length < limit) list.push({ pointer, message })
      else if (list.length === limit) list.push({ pointer: '', message: `has more problems than the ${limit} listed` })
    },
  }
}

/** RFC 6901: one more reference token. */
export function pointerTo(pointer: string, token: string | number): string {
  const plain = typeof token === 'number' || !(token.includes('~') || token.includes('/'))
  return `${pointer}/${plain ? token : token.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** For messages: the value as JSON, short whatever it is. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
}
