/** The last so many of something, at little cost: what has not been asked for during a whole generation is forgotten with it. */
export interface RecentAnswers<T> {
  get(question: string): T | undefined
  set(question: string, answer: T): void
  /** At most twice the size of a generation. */
  readonly size: number
}

export function createRecentAnswers<T>(generation: number): RecentAnswers<T> {
  let young = new Map<string, T>()
  let old = new Map<string, T>()

  function set(question: string, answer: T): void {
    if (young.size >= generation) {
      old = young
      young = new Map()
    }
    young.set(question, answer)
  }

  return {
    get(question) {
      const known = young.get(question)
      if (known !== undefined) return known
      const before = old.get(question)
      if (before !== undefined) set(question, before)
      return before
    },
    set,
    get size() {
      return young.size + old.size
    },
  }
}
