/** Answers that were requested more than once lately, at little cost. An answer that is unused during a whole generation is forgotten with it. */
export interface RecentAnswers<T> {
  get(question: string): T | undefined
  /** Kept when the same question is offered for the second time: a client that reads everything once is not remembered. */
  offer(question: string, answer: T): void
  /** At most twice the size of a generation. */
  readonly size: number
}

const SEEN = 4_096

export function createRecentAnswers<T>(generation: number): RecentAnswers<T> {
  let young = new Map<string, T>()
  let old = new Map<string, T>()
  const seen = new Uint32Array(SEEN)

  function keep(question: string, answer: T): void {
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
      if (before !== undefined) keep(question, before)
      return before
    },
    offer(question, answer) {
      const mark = markOf(question)
      const place = mark % SEEN
      if (seen[place] === mark) keep(question, answer)
      else seen[place] = mark
    },
    get size() {
      return young.size + old.size
    },
  }
}

/** FNV-1a. Two questions with the same mark only mean that one is kept a little early. */
function markOf(text: string): number {
  let mark = 0x811c9dc5
  for (let i = 0; i < text.length; i++) mark = Math.imul(mark ^ text.charCodeAt(i), 0x01000193)
  return mark >>> 0
}
