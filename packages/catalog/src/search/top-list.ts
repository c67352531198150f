export interface TopList {
  offer(id: number, score: number): void
  /** Best first, equal scores by id; the list is empty afterwards. */
  take(): { readonly id: number; readonly score: number }[]
}

/** The best `size` of any number: a heap whose root is the worst kept. */
export function createTopList(size: number): TopList {
  let heap: { id: number; score: number }[] = []

  function worse(a: number, b: number): boolean {
    const x = heap[a]
    const y = heap[b]
    if (!x || !y) return false
    return x.score < y.score || (x.score === y.score && x.id > y.id)
  }

  function swap(a: number, b: number): void {
    const x = heap[a]
    const y = heap[b]
    if (!x || !y) return
    heap[a] = y
    heap[b] = x
  }

  function up(at: number): void {
    for (let child = at; child > 0; ) {
      const parent = (child - 1) >> 1
      if (!worse(child, parent)) return
      swap(child, parent)
      child = parent
    }
  }

  function down(): void {
    for (let parent = 0; ; ) {
      const left = 2 * parent + 1
      const least = worse(left + 1, left) ? left + 1 : left
      if (!worse(least, parent)) return
      swap(least, parent)
      parent = least
    }
  }

  return {
    offer(id, score) {
      const root = heap[0]
      if (heap.length < size) {
        heap.push({ id, score })
        up(heap.length - 1)
      } else if (root && (score > root.score || (score === root.score && id < root.id))) {
        heap[0] = { id, score }
        down()
      }
    },
    take() {
      const kept = heap.sort((a, b) => b.score - a.score || a.id - b.id)
      heap = []
      return kept
    },
  }
}
