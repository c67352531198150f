/** Lets a bounded number of works run at a time. Others wait: groups take turns, and within a group they go in their order. */
export interface Slots {
  use<T>(group: string, work: () => Promise<T>): Promise<T>
}

export function createSlots(count: number): Slots {
  let free = count
  /** Groups in the order of their turns. */
  const waiting = new Map<string, (() => void)[]>()

  function enter(group: string): Promise<void> {
    return new Promise((resolve) => {
      const queue = waiting.get(group)
      if (queue === undefined) waiting.set(group, [resolve])
      else queue.push(resolve)
    })
  }

  /** Gives the slot to the group whose turn it is, which then goes to the end. */
  function leave(): void {
    const next = waiting.entries().next().value
    if (next === undefined) {
      free += 1
      return
    }
    const [group, [first, ...others]] = next
    waiting.delete(group)
    if (others.length > 0) waiting.set(group, others)
    first?.()
  }

  return {
    async use(group, work) {
      if (free > 0) free -= 1
      else await enter(group)
      try {
        return await work()
      } finally {
        leave()
      }
    },
  }
}
